import { headerName } from '../../core/header-name.ts';
import { quote } from '../../core/quote.ts';
import { CONNECTION_HEADERS } from './connection-headers.ts';

/** Maximum size of the headers that a transformation sets, in bytes; servers take 8 to 16 KiB in all. */
const MAX_HEADER_BYTES = 8 * 1024;

/** What Node sends as the value of a header (RFC 9110, 5.5). */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Headers that frame the request, name its host or identify and sign the delivery: Portico sets them. */
const OWN: ReadonlySet<string> = new Set([
  ...CONNECTION_HEADERS,
  'webhook-attempt',
  'webhook-id',
  'webhook-signature',
  'webhook-timestamp',
]);

/** Why a transformation cannot set a header of this name, as the end of a sentence; undefined: it can. */
export function headerProblem(name: string): string | undefined {
  const known = headerName(name);
  if (known === undefined) return 'is not the name of a header';
  return OWN.has(known) ? 'is a header that Portico sets itself' : undefined;
}

/** The headers that a transformation has set, by names in lower case. Throws Error. */
export function sentHeaders(entries: Iterable<readonly [string, unknown]>): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {};
  let bytes = 0;
  for (const [name, value] of entries) {
    const problem = headerProblem(name);
    if (problem !== undefined) throw new Error(`transform: ${quote(name)} ${problem}`);
    if (typeof value !== 'string') throw new Error(`transform: the header ${name} must be a text`);
    // The value may be a secret.
    if (!VALUE.test(value)) {
      throw new Error(`transform: the header ${name} has characters that no header may have`);
    }
    headers[name.toLowerCase()] = value;
    bytes += name.length + value.length + ': \r\n'.length;
  }
  if (bytes > MAX_HEADER_BYTES) {
    throw new Error(`transform: the headers have ${bytes} bytes, more than ${MAX_HEADER_BYTES}`);
  }
  return headers;
}
