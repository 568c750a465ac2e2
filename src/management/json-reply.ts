import type { FastifyReply } from 'fastify';
import { MEDIA_TYPES, type MediaType, mediaTypeFor } from './media-type.ts';

/** On every reply of this door: what it says is of this moment and for this reader. */
export const COMMON_HEADERS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' } as const;

const HEADERS = new Map(MEDIA_TYPES.map((type) => [type, { ...COMMON_HEADERS, 'content-type': type }]));

/** JSON text as bytes: Fastify would add a charset to a text, and JSON's media types have none. */
export function jsonBytes(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

/** Answers with JSON under the media type that the client prefers. */
export function replyJson(
  reply: FastifyReply,
  body: Buffer,
  type: MediaType = mediaTypeFor(reply.request.headers.accept),
): FastifyReply {
  return reply.headers(HEADERS.get(type) ?? COMMON_HEADERS).send(body);
}
