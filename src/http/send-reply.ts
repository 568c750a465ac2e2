import type { FastifyReply } from 'fastify';
import type { Reply } from './endpoint.ts';
import { isPieces, readablePieces } from './reply/reply-pieces.ts';

/** Keeps Fastify from adding a charset: a content type is sent exactly as its door writes it. */
function asIs(payload: unknown): string {
  return payload as string;
}

/** Sends an endpoint's reply by Fastify. */
export function send(reply: FastifyReply, { status, type, body, headers }: Reply): FastifyReply {
  if (headers !== undefined) addFields(reply, headers);
  if (type !== '') reply.type(type);
  // A 304 has no body, and a length would be that of the reply without a condition.
  if (status === 304) return reply.code(status).send();
  return reply
    .code(status)
    .serializer(asIs)
    .send(isPieces(body) ? readablePieces(body, reply) : body);
}

/** Adds header fields to a reply of Fastify's, whose Vary then names what it named before too. */
export function addFields(reply: FastifyReply, headers: Readonly<Record<string, string>>): FastifyReply {
  return reply.headers(withVary(reply.getHeader('vary'), headers));
}

/** Fields whose Vary names what another Vary does too. */
export function withVary(
  before: unknown,
  headers: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  if (headers.vary === undefined || before === undefined) return headers;
  return { ...headers, vary: joinVary(String(before), headers.vary) };
}

/** Both lists of a Vary, without what both have, in whatever case (RFC 9110 12.5.5). */
function joinVary(before: string, more: string): string {
  const names = new Map<string, string>();
  for (const part of `${before},${more}`.split(',')) {
    const name = part.trim();
    const key = name.toLowerCase();
    if (name !== '' && !names.has(key)) names.set(key, name);
  }
  return names.has('*') ? '*' : [...names.values()].join(', ');
}
