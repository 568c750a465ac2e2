import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify';
import type { Reply } from './endpoint.ts';
import { HttpProblem, toProblem } from './problem.ts';
import { send } from './send-reply.ts';

/** How a door writes a refusal: its content type and body. Pure; one per door. */
export interface ErrorFormat {
  readonly contentType: string;
  /** Further header fields of every refusal, by name in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  body(problem: HttpProblem, request: { readonly method: string; readonly url: string } | undefined): string;
}

/** What a refusal is written for. */
interface RefusedRequest {
  readonly id: string;
  readonly method: string;
  readonly url: string;
  readonly log: Pick<FastifyBaseLogger, 'error'>;
}

/** The reply to an error, in the door's format. A failure of ours is logged with the request's id. */
export function refusal(format: ErrorFormat, error: unknown, request: RefusedRequest): Reply {
  const problem = toProblem(error);
  // Under load a refusal is no failure, and an entry for each would be load too.
  const isBusy = error instanceof HttpProblem && error.headers?.['retry-after'] !== undefined;
  if (problem.status >= 500 && !isBusy)
    request.log.error({ reqId: request.id, err: error }, 'request failed');
  return {
    status: problem.status,
    type: format.contentType,
    body: format.body(problem, request),
    headers: { ...format.headers, ...problem.headers },
  };
}

/** Answers a request of Fastify's with the refusal. */
export function sendProblem(
  format: ErrorFormat,
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  return send(reply, refusal(format, error, request));
}
