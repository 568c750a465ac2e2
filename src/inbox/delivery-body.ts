import type { IncomingHttpHeaders } from 'node:http';
import { HttpProblem, parseJsonBody, parseJsonText } from '@portico/transport';
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

/** The fields of a form by name; a repeated name has an array of its values, in order. */
type FormFields = Readonly<Record<string, string | readonly string[]>>;

const FORM = /^\s*application\/x-www-form-urlencoded\s*(?:;|$)/i;
const formDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Whether a Content-Type is that of a form. */
export function isFormType(contentType: string | null): boolean {
  return contentType !== null && FORM.test(contentType);
}

/**
 * Parses application/x-www-form-urlencoded strictly: bytes and escapes must be valid UTF-8, and no field may
 * be named `__proto__`. Throws HttpProblem with status 400.
 */
export function parseFormBody(body: Uint8Array): FormFields {
  const fields = new Map<string, string[]>();
  try {
    for (const pair of formDecoder.decode(body).split('&')) {
      if (pair === '') continue;
      const end = pair.indexOf('=');
      const name = decoded(end === -1 ? pair : pair.slice(0, end));
      const value = end === -1 ? '' : decoded(pair.slice(end + 1));
      const known = fields.get(name);
      if (known === undefined) fields.set(name, [value]);
      else known.push(value);
    }
  } catch (cause) {
    throw new HttpProblem(400, 'MALFORMED_FORM', 'The form is malformed', { cause });
  }
  if (fields.has('__proto__')) throw new HttpProblem(400, 'PROTO_KEY', 'The form has a field "__proto__"');
  return Object.fromEntries(
    Array.from(fields, ([name, values]) => [name, values.length === 1 ? (values[0] ?? '') : values]),
  );
}

function decoded(text: string): string {
  return decodeURIComponent(text.replaceAll('+', ' '));
}
