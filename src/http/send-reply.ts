import type { FastifyReply } from 'fastify';
import type { Reply } from './endpoint.ts';

/** Keeps Fastify from adding a charset: a content type is sent exactly as its door writes it. */
function asIs(payload: unknown): string {
  return payload as string;
}

/** Sends an endpoint's reply by Fastify. */
export function send(reply: FastifyReply, { status, type, body, headers }: Reply): FastifyReply {
  if (headers !== undefined) reply.headers(withVary(reply.getHeader('vary'), headers));
  if (type !== '') reply.type(type);
  // A 304 has no body, and a length would be that of the reply without a condition.
  if (status === 304) return reply.code(status).send();
  return reply.code(status).serializer(asIs).send(body);
}

/** Fields whose Vary names what another Vary does too. */
export function withVary(
  before: unknown,
  headers: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  if (headers.vary === undefined || before === undefined) return headers;
  return { ...headers, vary: joinVary(String(before), headers.vary) };
}

/** Both lists of a Vary, without what both have. */
export function joinVary(before: string | undefined, more: string): string {
  const names = [before ?? '', more].flatMap((list) => list.split(',').map((name) => name.trim()));
  return [...new Set(names.filter((name) => name !== ''))].join(', ');
}
