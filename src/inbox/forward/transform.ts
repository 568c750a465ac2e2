import * as v from 'valibot';
import { type Given, namedOf, pointerField, readObject } from '../../config/schema/fields.ts';
import { entriesOf, isRecord, parsePointer, valueAt } from '../../core/json.ts';
import { headerName } from '../../core/redaction.ts';
import { quote } from '../../core/text.ts';
import type { TransformData } from '../config.ts';
import {
  type ClaimedJob,
  type DeliveryTransform,
  type ReceivedDelivery,
  receivedDelivery,
} from '../delivery.ts';
import { parseDeliveryBody } from '../delivery-body.ts';

/** What an attempt sends, before signing. */
interface Sent {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** Transforms a claimed delivery. Rejects if that fails, and once the signal aborts. */
type Transformer = (job: ClaimedJob, unchanged: Sent, signal: AbortSignal) => Promise<Sent>;

/** Compiles a transformation; its body is limited to `maxBodyBytes` or the received size, if larger. */
export function transformer(transform: DeliveryTransform | TransformData, maxBodyBytes: number): Transformer {
  const run = typeof transform === 'function' ? transform : dataTransform(transform);
  return async ({ delivery, attempt }, unchanged, signal) => {
    const { body: rawBody, contentType } = delivery;
    const seen = receivedDelivery(delivery, parseDeliveryBody(delivery));
    const result = await beforeAbort(run({ ...seen, attempt, contentType, rawBody }, { signal }), signal);
    const sent = read(result, unchanged);
    const max = Math.max(maxBodyBytes, rawBody.byteLength);
    if (sent.body.byteLength > max) {
      throw new Error(`transform: the body has ${sent.body.byteLength} bytes, more than ${max}`);
    }
    return sent;
  };
}

function read(result: unknown, unchanged: Sent): Sent {
  if (!isRecord(result)) throw new Error('transform: must return an object with body, headers or url');
  const { body, url, headers = {} } = result;
  if (!isRecord(headers)) throw new Error('transform: headers must be an object of texts');
  const isJson = body !== undefined && typeof body !== 'string' && !(body instanceof Uint8Array);
  return {
    url: url === undefined ? unchanged.url : readUrl(url),
    headers: {
      ...unchanged.headers,
      ...(isJson && { 'content-type': 'application/json' }),
      ...sentHeaders(entriesOf(headers)),
    },
    body: body === undefined ? unchanged.body : bytesOf(body),
  };
}

function bytesOf(body: unknown): Uint8Array {
  if (body instanceof Uint8Array) return body;
  const text: string | undefined = typeof body === 'string' ? body : JSON.stringify(body);
  if (text === undefined) throw new Error('transform: the body is neither text, bytes nor a JSON value');
  return Buffer.from(text);
}

function readUrl(given: unknown): URL {
  const url = given instanceof URL || typeof given === 'string' ? URL.parse(given) : null;
  const isHttp = url?.protocol === 'http:' || url?.protocol === 'https:';
  if (url === null || !isHttp || url.username !== '' || url.password !== '') {
    throw new Error('transform: url must be an http or https URL without a user name in it');
  }
  return url;
}

/** Waits for a result until the signal aborts, after which nothing may be sent. */
async function beforeAbort<T>(result: T | Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();
  try {
    return await Promise.race([result, promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

const POINTER = 'must be a JSON pointer such as /data/id';
const TEMPLATE =
  'must be a text; braces only as in {id}, {event}, {senderEvent}, {source} and {/a/json/pointer}';

const dataSchema = v.object(
  { body: v.optional(v.unknown()), headers: v.optional(v.unknown()) },
  'must be an object with body or headers',
);

/** Checks a transformation given as data. Appends one line per problem to `problems`. */
export function checkTransform(owner: Given, problems: string[]): void {
  const value = isRecord(owner.value) ? owner.value.transform : undefined;
  if (!isRecord(value)) return;
  const given = { value, path: `${owner.path}.transform` };
  readObject(dataSchema, given, problems);
  const body = { value: value.body, path: `${given.path}.body` };
  const pointers = isRecord(body.value) ? namedOf(body, 'JSON pointers', problems) : [body];
  for (const { value, path } of pointers) {
    if (value !== undefined && !v.is(pointerField(POINTER), value)) problems.push(`${path} ${POINTER}`);
  }
  const headers = { value: value.headers, path: `${given.path}.headers` };
  for (const { name, value, path } of namedOf(headers, 'texts', problems)) {
    const problem = headerProblem(name);
    if (problem !== undefined) problems.push(`${path} ${problem}`);
    if (typeof value !== 'string' || headerTemplate(value) === undefined)
      problems.push(`${path} ${TEMPLATE}`);
  }
}

/** Compiles a valid transformation given as data. The result throws if the part to send is missing. */
function dataTransform({ body, headers = {} }: TransformData): DeliveryTransform {
  const pick = body === undefined ? undefined : picker(body);
  const templates = Object.entries(headers).flatMap(([name, text]) => {
    const fill = headerTemplate(text);
    return fill === undefined ? [] : [[name, fill] as const];
  });
  return (delivery) => {
    const filled = templates.flatMap(([name, fill]) => {
      const value = fill(delivery);
      return value === undefined ? [] : [[name, value] as const];
    });
    const set = Object.fromEntries(filled);
    if (pick === undefined) return { headers: set };
    // As bytes, because a picked string is also sent as JSON.
    const body = Buffer.from(JSON.stringify(pick(delivery.body)));
    return { body, headers: { 'content-type': 'application/json', ...set } };
  };
}

function picker(pointers: NonNullable<TransformData['body']>): (body: unknown) => unknown {
  if (typeof pointers === 'string') {
    const pointer = parsePointer(pointers) ?? [];
    return (body) => {
      const value = valueAt(body, pointer);
      if (value === undefined) throw new Error(`transform: the body has nothing at ${pointers}`);
      return value;
    };
  }
  const members = Object.entries(pointers).map(([name, text]) => [name, parsePointer(text) ?? []] as const);
  return (body) => Object.fromEntries(members.map(([name, pointer]) => [name, valueAt(body, pointer)]));
}

/** Headers of the connection and the transfer (RFC 9110), in lower case, which belong to one request. */
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

/** Parses a template with `{id}`, `{event}`, `{senderEvent}`, `{source}` and `{/pointer}` into the body. */
function headerTemplate(text: string): HeaderTemplate | undefined {
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
function headerProblem(name: string): string | undefined {
  const known = headerName(name);
  if (known === undefined) return 'is not the name of a header';
  return OWN.has(known) ? 'is a header that Portico sets itself' : undefined;
}

/** Validates the headers set by a transformation and returns them by lower-case name. Throws Error. */
function sentHeaders(entries: Iterable<readonly [string, unknown]>): Readonly<Record<string, string>> {
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
