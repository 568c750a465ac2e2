import { parsePointer, valueAt } from '../../core/json.ts';
import { headerName } from '../../core/redaction.ts';
import { quote } from '../../core/text.ts';
import type { ReceivedDelivery } from '../delivery.ts';

/**
 * Headers of the connection and the transfer (RFC 9110), in lower case; they are specific to each request.
 */
export const CONNECTION_HEADERS: readonly string[] = [
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];

/** Returns the header value for a delivery; undefined if the delivery lacks a value for a placeholder. */
type HeaderTemplate = (delivery: ReceivedDelivery) => string | undefined;

/**
 * Parses a template with the placeholders `{id}`, `{event}`, `{senderEvent}`, `{source}` and `{/pointer}`
 * (into the body); undefined if it is invalid.
 */
export function headerTemplate(text: string): HeaderTemplate | undefined {
  const parts: HeaderTemplate[] = [];
  // With a capturing group, `split` alternates texts and placeholders.
  for (const [index, piece] of text.split(/\{([^{}]*)\}/).entries()) {
    const part = index % 2 === 0 ? plainPart(piece) : placeholder(piece);
    if (part === undefined) return undefined;
    parts.push(part);
  }
  return (delivery) => {
    let filled = '';
    for (const part of parts) {
      const value = part(delivery);
      if (value === undefined) return undefined;
      filled += value;
    }
    return filled;
  };
}

function plainPart(text: string): HeaderTemplate | undefined {
  return /^[^{}]*$/.test(text) ? () => text : undefined;
}

function placeholder(name: string): HeaderTemplate | undefined {
  if (name === 'id' || name === 'event' || name === 'senderEvent' || name === 'source')
    return (delivery) => delivery[name] ?? undefined;
  const pointer = parsePointer(name);
  if (pointer === undefined || name === '') return undefined;
  return ({ body }) => {
    const value = valueAt(body, pointer);
    if (value === undefined || value === null) return undefined;
    return typeof value === 'string' ? value : JSON.stringify(value);
  };
}

/** Maximum size of the headers that a transformation sets, in bytes; servers accept 8 to 16 KiB in total. */
const MAX_HEADER_BYTES = 8 * 1024;

/** The values that Node accepts for a header (RFC 9110, 5.5). */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Headers that Portico sets: they frame the request, name its host, or identify and sign the delivery. */
const OWN: ReadonlySet<string> = new Set([
  ...CONNECTION_HEADERS,
  'webhook-attempt',
  'webhook-id',
  'webhook-signature',
  'webhook-timestamp',
]);

/** Why a transformation cannot set a header, as the end of a sentence; undefined if it can. */
export function headerProblem(name: string): string | undefined {
  const known = headerName(name);
  if (known === undefined) return 'is not the name of a header';
  return OWN.has(known) ? 'is a header that Portico sets itself' : undefined;
}

/** Validates the headers set by a transformation and returns them by lower-case name. Throws Error. */
export function sentHeaders(entries: Iterable<readonly [string, unknown]>): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {};
  let bytes = 0;
  for (const [name, value] of entries) {
    const problem = headerProblem(name);
    if (problem !== undefined) throw new Error(`transform: ${quote(name)} ${problem}`);
    if (typeof value !== 'string') throw new Error(`transform: the header ${name} must be a text`);
    // The message omits the value, which may be a secret.
    if (!VALUE.test(value)) {
      throw new Error(`transform: the header ${name} contains characters that are not allowed in a header`);
    }
    headers[name.toLowerCase()] = value;
    bytes += name.length + value.length + ': \r\n'.length;
  }
  if (bytes > MAX_HEADER_BYTES) {
    throw new Error(`transform: the headers have ${bytes} bytes, more than ${MAX_HEADER_BYTES}`);
  }
  return headers;
}
