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
  readonly log: Pick<FastifyBaseLogger, 'error' | 'debug'>;
}

/**
 * The reply to an error, in the door's format, with its code in `x-error-code`. A failure of ours is logged with the
 * request's id, a refusal at debug.
 */
export function refusal(format: ErrorFormat, error: unknown, request: RefusedRequest): Reply {
  const problem = toProblem(error);
  // Under load a refusal is no failure, and an entry for each would be load too.
  const isBusy = error instanceof HttpProblem && error.headers['retry-after'] !== undefined;
  const { status, code } = problem;
  const { id: reqId, method, url, log } = request;
  if (status >= 500 && !isBusy) log.error({ reqId, err: error }, 'request failed');
  else {
    // Without the query, which may hold secrets.
    const [path] = url.split('?', 1);
    log.debug({ reqId, method, path, status, code, reason: reasonOf(problem) }, 'request refused');
  }
  return {
    status,
    type: format.contentType,
    body: format.body(problem, request),
    headers: { ...format.headers, ...problem.headers, 'x-error-code': code },
  };
}

/** What Fastify or Node refused has its reason in the cause. */
function reasonOf({ message, cause }: HttpProblem): string {
  return cause instanceof Error ? cause.message : message;
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
