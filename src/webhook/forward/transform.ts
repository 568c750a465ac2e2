import type { TransformData } from '../../config/schema/webhook-transform.ts';
import { entriesOf, isRecord } from '../../core/record.ts';
import type { ClaimedJob } from '../../inbox/delivery.ts';
import { parseDeliveryBody } from '../../inbox/delivery-body.ts';
import { receivedDelivery } from '../../inbox/rules/received-delivery.ts';
import type { DeliveryTransform } from '../../inbox/rules/transform.ts';
import { sentHeaders } from './sent-headers.ts';
import { dataTransform } from './transform-data.ts';

/** What one attempt sends, before it is signed. */
export interface Sent {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** Turns a claimed delivery into what is sent. Rejects when it cannot, and once the signal aborts. */
export type Transformer = (job: ClaimedJob, unchanged: Sent, signal: AbortSignal) => Promise<Sent>;

/** Prepares a transformation; what it makes may be as large as the received body, or `maxBodyBytes`. */
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
  if (!isRecord(result)) throw new Error('transform: must give an object of body, headers and url');
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

/** Waits for a result no longer than until the signal aborts: nothing is sent any more then. */
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
