import type { Exchange, Reply } from '../http/endpoint.ts';
import { mediaTypeFor } from './media-type.ts';

/** On every reply of this door: it is about this moment and for this reader. */
export const COMMON_HEADERS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' } as const;

/** On a reply whose content the Accept header chooses. */
export const NEGOTIATED_HEADERS = { ...COMMON_HEADERS, vary: 'accept' } as const;

/** The reply of a write that has nothing to say. */
export const NO_CONTENT: Reply = { status: 204, type: '', body: '', headers: COMMON_HEADERS };

/** A value as JSON, under the media type that the client prefers. */
export function jsonReply(exchange: Pick<Exchange, 'headers'>, value: unknown): Reply {
  return jsonTextReply(exchange, JSON.stringify(value));
}

/** The same for JSON that is written already. */
export function jsonTextReply({ headers }: Pick<Exchange, 'headers'>, body: string | Buffer): Reply {
  return { status: 200, type: mediaTypeFor(headers.accept), body, headers: COMMON_HEADERS };
}
