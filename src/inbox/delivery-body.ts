import type { IncomingHttpHeaders } from 'node:http';
import { isFormType, parseFormBody, parseJsonBody, parseJsonText } from '@portico/transport';
import type { DeliveryHeaders, StoredDelivery } from './delivery.ts';

// Apart from delivery.ts, because the threads of SQLite load that file and need no HTTP.

/** Maximum size of a delivery's kept headers, names and values together, in bytes. */
const MAX_HEADER_BYTES = 4_096;

/**
 * The request headers to keep, in the order of `names`, as JSON text; null if there are none. A header that
 * would exceed `MAX_HEADER_BYTES` is omitted entirely, because a cut value would be wrong.
 */
export function keptHeaders(names: readonly string[], headers: Readonly<IncomingHttpHeaders>): string | null {
  const kept: [string, string][] = [];
  let left = MAX_HEADER_BYTES;
  for (const name of names) {
    const value = headers[name];
    if (typeof value !== 'string') continue;
    // Node reads header bytes as Latin-1: one character each.
    const size = name.length + value.length;
    if (size > left) continue;
    left -= size;
    kept.push([name, value]);
  }
  return kept.length === 0 ? null : JSON.stringify(Object.fromEntries(kept));
}

/** The headers of a stored delivery. */
export function headersOf({ headers = null }: Pick<StoredDelivery, 'headers'>): DeliveryHeaders {
  return headers === null ? {} : (JSON.parse(headers) as DeliveryHeaders);
}

const WHITESPACE: ReadonlySet<number> = new Set([0x09, 0x0a, 0x0d, 0x20]);

/**
 * Parses the body of a delivery. The result depends only on the stored delivery, so every attempt gets the
 * same value. /webhook itself accepts JSON with any content type (CONTRACT.md#webhook-receipt). Signed
 * sources may also send forms: the value is the JSON in the field `payload`, as GitHub and Slack send it, or
 * else the fields as an object. Throws an HttpProblem with status 400.
 */
export function parseDeliveryBody({
  source,
  contentType,
  body,
}: Pick<StoredDelivery, 'source' | 'contentType' | 'body'>): unknown {
  if (source === '' || !isFormType(contentType) || startsLikeJson(body)) return parseJsonBody(body);
  const fields = parseFormBody(body);
  const { payload } = fields;
  return typeof payload === 'string' && /^\s*\{/.test(payload) ? parseJsonText(payload) : fields;
}

/** Some clients, such as curl, label every body without an explicit type as a form. */
function startsLikeJson(body: Uint8Array): boolean {
  const first = body.find((byte) => !WHITESPACE.has(byte));
  return first === 0x7b || first === 0x5b;
}
