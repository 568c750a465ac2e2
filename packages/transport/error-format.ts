import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyBaseLogger } from 'fastify';
import { ERROR_CODES } from '../../src/core/error-codes.ts';
import { handlesStrictly, parseAccept, STRICT_APPLIED } from '../../src/core/negotiation.ts';
import { requestFields } from '../../src/core/trace.ts';
import type { Reply } from './endpoint.ts';
import { HttpProblem, reasonPhrase, toProblem } from './problem.ts';

/** The media type of problem details in JSON (RFC 9457). */
export const PROBLEM_TYPE = 'application/problem+json';

/**
 * Whether an Accept header names problem details. Wildcards do not count: clients that know nothing of
 * problem details send `*\/*`.
 */
function takesProblems(accept: string | undefined): boolean {
  if (accept === undefined || !/problem\+json/i.test(accept)) return false;
  const { weight, specificity } = parseAccept(accept)(PROBLEM_TYPE);
  return weight > 0 && specificity === 2;
}

/**
 * A refusal as problem details: `title` describes the code, `detail` this occurrence, and `errors` lists the
 * individual faults if there are several or if one has a location.
 */
function problemDetails({ code, message, reasons }: HttpProblem, status: number): string {
  return JSON.stringify({
    type: `urn:problem-type:portico:${code}`,
    title: titleOf(code) ?? reasonPhrase(status),
    status,
    detail: message,
    code,
    errors: reasons.length === 0 ? undefined : reasons,
  });
}

/** The title of a code; undefined for codes of Fastify and Node, which are not in the catalogue. */
function titleOf(code: string): string | undefined {
  const known: Readonly<Record<string, { readonly text: string }>> = ERROR_CODES;
  return Object.hasOwn(known, code) ? known[code]?.text : undefined;
}

/**
 * How a door formats a refusal for clients that do not ask for problem details: content type and body. Pure;
 * one per door.
 */
export interface ErrorFormat {
  readonly contentType: string;
  /** Further headers of every refusal, by name in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  body(problem: HttpProblem, request: { readonly method: string; readonly url: string } | undefined): string;
  /**
   * The status that the contract prescribes instead of HTTP's own; it applies unless the client prefers
   * strict handling.
   */
  contractStatus?(problem: HttpProblem, request: { readonly method: string }): number | undefined;
  /** Whether refusals of requests for a target are problem details whatever the client accepts. */
  hasProblems?(url: string): boolean;
}

/** The request that a refusal answers. */
interface RefusedRequest {
  readonly id: string;
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<IncomingHttpHeaders>;
  readonly log: Pick<FastifyBaseLogger, 'error' | 'debug'>;
}

/**
 * The reply to an error, with its code in `x-error-code`: in the door's format, or as problem details if the
 * client accepts them. A failure is logged as an error with the request's id, a refusal at debug level.
 */
export function refusal(format: ErrorFormat, error: unknown, request: RefusedRequest): Reply {
  const problem = toProblem(error);
  const { code } = problem;
  const contractStatus = format.contractStatus?.(problem, request) ?? problem.status;
  const isStrict = contractStatus !== problem.status && handlesStrictly(request);
  const status = isStrict ? problem.status : contractStatus;
  note(error, problem, status, request);
  const headers = {
    ...format.headers,
    ...problem.headers,
    'x-error-code': code,
    ...(isStrict ? STRICT_APPLIED : {}),
  };
  const hasProblems = format.hasProblems?.(request.url) === true;
  if (!hasProblems && !takesProblems(request.headers.accept)) {
    return { status, type: format.contentType, body: format.body(problem, request), headers };
  }
  const vary = isStrict ? 'accept, prefer' : 'accept';
  const body = problemDetails(problem, status);
  return { status, type: PROBLEM_TYPE, body, headers: hasProblems ? headers : { ...headers, vary } };
}

/** Logs a failure as an error and a refusal at debug level. */
function note(error: unknown, problem: HttpProblem, status: number, request: RefusedRequest): void {
  const { method, url, log } = request;
  const entry = requestFields(request);
  // Refusing under load is not a failure, and logging each refusal would add to the load.
  const isBusy = error instanceof HttpProblem && error.headers['retry-after'] !== undefined;
  if (status >= 500 && !isBusy) {
    log.error({ ...entry, err: error }, 'request failed');
    return;
  }
  // The query is left out because it may hold secrets.
  const [path] = url.split('?', 1);
  const { code } = problem;
  log.debug({ ...entry, method, path, status, code, reason: reasonOf(problem) }, 'request refused');
}

/** The reason of a refusal by Fastify or Node is in the cause. */
function reasonOf({ message, cause }: HttpProblem): string {
  return cause instanceof Error ? cause.message : message;
}
