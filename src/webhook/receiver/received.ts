import type { IncomingHttpHeaders } from 'node:http';

/** What a request says, read by the rules of its source. */
export interface Received {
  readonly source: string;
  readonly event: string | null;
  readonly dataPointer: string;
  readonly dedupKey: string | null;
  readonly contentType: string | null;
  readonly body: Uint8Array;
  /** What the body says. */
  readonly parsed: unknown;
}

/** What a request to /webhook itself says. */
export function readReceived(
  headers: IncomingHttpHeaders,
  contentType: string | null,
  body: Uint8Array,
  parsed: unknown,
): Received {
  return {
    source: '',
    event: eventOf(parsed),
    dataPointer: '/data',
    dedupKey: dedupKeyOf(headers),
    contentType,
    body,
    parsed,
  };
}

/** The `event` of a body (contract 2.5); null when the body is any other JSON value. */
function eventOf(body: unknown): string | null {
  if (typeof body !== 'object' || body === null) return null;
  const { event } = body as { readonly event?: unknown };
  return typeof event === 'string' ? event : null;
}

/** Longer keys are no keys: a sender would fill the index with them. */
const MAX_KEY = 255;

/** A sender that repeats a delivery may say so (Standard Webhooks, draft-ietf-httpapi-idempotency-key-header). */
function dedupKeyOf(headers: IncomingHttpHeaders): string | null {
  const key = headers['webhook-id'] ?? headers['idempotency-key'];
  return typeof key === 'string' && key !== '' && key.length <= MAX_KEY ? key : null;
}
