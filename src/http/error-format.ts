import type { FastifyReply, FastifyRequest } from 'fastify';
import { type HttpProblem, toProblem } from './problem.ts';

/** How a door writes a refusal: its content type and body. Pure; one per door. */
export interface ErrorFormat {
  readonly contentType: string;
  /** Further header fields of every refusal, by name in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  body(problem: HttpProblem, request: { readonly method: string; readonly url: string } | undefined): string;
}

/** Keeps Fastify from adding a charset: a content type is sent exactly as its door writes it. */
export function asIs(payload: unknown): string {
  return payload as string;
}

/** Answers with a problem in the door's format; what is our own fault is logged with the request's id. */
export function sendProblem(
  format: ErrorFormat,
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  const problem = toProblem(error);
  if (problem.status >= 500) request.log.error({ reqId: request.id, err: error }, 'request failed');
  return reply
    .code(problem.status)
    .headers({ ...format.headers, ...problem.headers })
    .type(format.contentType)
    .serializer(asIs)
    .send(format.body(problem, request));
}
