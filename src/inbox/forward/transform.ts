import * as v from 'valibot';
import { type Given, namedOf, pointerField, readObject } from '../../config/schema/fields.ts';
import type { TransformData } from '../../config/schema/webhook.ts';
import { entriesOf, isRecord, parsePointer, valueAt } from '../../core/json.ts';
import { type ClaimedJob, parseDeliveryBody, receivedDelivery } from '../delivery.ts';
import type { DeliveryTransform } from '../rules.ts';
import { headerProblem, headerTemplate, sentHeaders } from './sent-headers.ts';

/** What an attempt sends, before signing. */
interface Sent {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** Transforms a claimed delivery. Rejects if that fails, and once the signal aborts. */
type Transformer = (job: ClaimedJob, unchanged: Sent, signal: AbortSignal) => Promise<Sent>;

/**
 * Compiles a transformation. Its body may be as large as the received one or `maxBodyBytes`, whichever is
 * larger.
 */
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
