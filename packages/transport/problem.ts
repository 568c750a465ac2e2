import { STATUS_CODES } from 'node:http';
import type { ErrorCode } from '../../src/core/error-codes.ts';
import { OutcomeUnknownError, StoreUnavailableError } from '../../src/core/errors.ts';

/** An error code of Fastify (FST_), Node's HTTP parser (HPE_) or Node (ERR_). */
type FrameworkCode = `FST_${string}` | `HPE_${string}` | `ERR_${string}`;

/** One of Portico's own codes, or the code of Fastify or Node for requests that they refused. */
export type ProblemCode = ErrorCode | FrameworkCode;

/** One fault of a request. */
interface Reason {
  readonly detail: string;
  /** The location in the body, a JSON Pointer as a URI fragment: `#/email`. */
  readonly pointer?: string;
  /** The query parameter. */
  readonly parameter?: string;
  /** The code that a hook of a relation gives. */
  readonly reason?: string;
}

/** The cause and further details of a problem. */
interface ProblemOptions extends ErrorOptions {
  /** Reply headers, by name in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The individual faults, if the message alone does not describe them all. */
  readonly reasons?: readonly Reason[];
}

/** A refused request. `status` is an HTTP status of 400 or above; `message` may be shown to the client. */
export class HttpProblem extends Error {
  override readonly name = 'HttpProblem';
  readonly status: number;
  /** A stable code for programs and logs. */
  readonly code: ProblemCode;
  /** Headers of the refusal, such as Allow. */
  readonly headers: Readonly<Record<string, string>>;
  /** The individual faults; empty if the message describes them all. */
  readonly reasons: readonly Reason[];

  constructor(status: number, code: ProblemCode, message: string, options: ProblemOptions = {}) {
    super(message, options);
    this.status = status;
    this.code = code;
    this.headers = options.headers ?? {};
    this.reasons = options.reasons ?? [];
  }
}

/** The reason phrase of a status, or "Error" if the status is unknown. */
export function reasonPhrase(status: number): string {
  return STATUS_CODES[status] ?? 'Error';
}

/**
 * Converts any thrown value to a problem that is safe to show: an HttpProblem is kept, a refusal by Fastify
 * becomes its reason phrase, and everything else becomes a 500, or a 503 if the store is unavailable, that
 * reveals no internals.
 */
export function toProblem(error: unknown): HttpProblem {
  if (error instanceof HttpProblem) return error;
  if (error instanceof StoreUnavailableError) {
    return new HttpProblem(503, error.code, reasonPhrase(503), {
      cause: error,
      // No Retry-After if the write may have been stored: the client must not simply repeat it.
      headers: error instanceof OutcomeUnknownError ? {} : { 'retry-after': '1' },
    });
  }
  const { statusCode, code } = Object(error) as { readonly statusCode?: unknown; readonly code?: unknown };
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return bodyTooLarge();
  const status = typeof statusCode === 'number' && statusCode >= 400 && statusCode <= 599 ? statusCode : 500;
  return new HttpProblem(status, problemCode(status, code), reasonPhrase(status), { cause: error });
}

/** The code if it is one of Fastify's or Node's; otherwise undefined. */
export function frameworkCode(code: unknown): FrameworkCode | undefined {
  return typeof code === 'string' && /^(?:FST|HPE|ERR)_/.test(code) ? (code as FrameworkCode) : undefined;
}

/** Refusals keep Fastify's code. Of the failures, only a timeout does, because programs look for it. */
function problemCode(status: number, code: unknown): ProblemCode {
  if (status < 500) return frameworkCode(code) ?? 'BAD_REQUEST';
  return code === 'FST_ERR_HANDLER_TIMEOUT' ? code : 'INTERNAL';
}

/**
 * The refusal of a body that exceeds its route's limit; it closes the connection because the rest may still
 * arrive.
 */
export function bodyTooLarge(): HttpProblem {
  const headers = { connection: 'close' };
  return new HttpProblem(413, 'BODY_TOO_LARGE', reasonPhrase(413), { headers });
}
