import type { FastifyReply } from 'fastify';
import type { Reply } from './endpoint.ts';

/** Keeps Fastify from adding a charset: a content type is sent exactly as its door writes it. */
function asIs(payload: unknown): string {
  return payload as string;
}

/** Sends an endpoint's reply by Fastify. */
export function send(reply: FastifyReply, { status, type, body, headers }: Reply): FastifyReply {
  if (headers !== undefined) reply.headers(headers);
  if (type !== '') reply.type(type);
  // A 304 has no body, and a length would be that of the reply without a condition.
  if (status === 304) return reply.code(status).send();
  return reply.code(status).serializer(asIs).send(body);
}
