import { STATUS_CODES } from 'node:http';
import type { ErrorCode } from '../../src/core/error-codes.ts';
import { OutcomeUnknownError, StoreUnavailableError } from '../../src/core/errors.ts';

/** A code of Fastify (FST_), of Node's HTTP parser (HPE_) or of Node (ERR_). */
type FrameworkCode = `FST_${string}` | `HPE_${string}` | `ERR_${string}`;

/** A code of Portico's own, or that of Fastify or Node for what they refused. */
export type ProblemCode = ErrorCode | FrameworkCode;

/** One thing that is wrong with a request. */
interface Reason {
  readonly detail: string;
  /** The place in the body, a JSON Pointer as a fragment: `#/email`. */
  readonly pointer?: string;
}

/** The cause of a problem, and what belongs to the refusal. */
interface ProblemOptions extends ErrorOptions {
  /** Header fields, by name in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Each thing that is wrong, where the message alone does not say it all. */
  readonly reasons?: readonly Reason[];
}

/** Why a request is refused. `status` is an HTTP status of 400 or above; `message` may be shown to the client. */
export class HttpProblem extends Error {
  override readonly name = 'HttpProblem';
  readonly status: number;
  /** A stable code for programs and logs. */
  readonly code: ProblemCode;
  /** Header fields that belong to the refusal, such as Allow. */
  readonly headers: Readonly<Record<string, string>>;
  /** Each thing that is wrong; empty where the message says it all. */
  readonly reasons: readonly Reason[];

  constructor(status: number, code: ProblemCode, message: string, options: ProblemOptions = {}) {
    super(message, options);
    this.status = status;
    this.code = code;
    this.headers = options.headers ?? {};
    this.reasons = options.reasons ?? [];
  }
}

/** The reason phrase of a status, as a text to show. */
export function reasonPhrase(status: number): string {
  return STATUS_CODES[status] ?? 'Error';
}

/**
 * Turns whatever was thrown into a problem that is safe to show: messages of our own refusals stay,
 * a refusal of Fastify's becomes its reason phrase, everything else is a 500 (or 503 for the store)
 * without a word about the inside.
 */
export function toProblem(error: unknown): HttpProblem {
  if (error instanceof HttpProblem) return error;
  if (error instanceof StoreUnavailableError) {
    return new HttpProblem(503, error.code, reasonPhrase(503), {
      cause: error,
      // What may be stored is not to be sent again.
      headers: error instanceof OutcomeUnknownError ? {} : { 'retry-after': '1' },
    });
  }
  const { statusCode, code } = Object(error) as { readonly statusCode?: unknown; readonly code?: unknown };
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return bodyTooLarge();
  const status = typeof statusCode === 'number' && statusCode >= 400 && statusCode <= 599 ? statusCode : 500;
  return new HttpProblem(status, problemCode(status, code), reasonPhrase(status), { cause: error });
}

/** The code if it is one of Fastify's or Node's; undefined for all else. */
export function frameworkCode(code: unknown): FrameworkCode | undefined {
  return typeof code === 'string' && /^(?:FST|HPE|ERR)_/.test(code) ? (code as FrameworkCode) : undefined;
}

/** A refusal keeps Fastify's code; of failures only a timeout does, which programs look for. */
function problemCode(status: number, code: unknown): ProblemCode {
  if (status < 500) return frameworkCode(code) ?? 'BAD_REQUEST';
  return code === 'FST_ERR_HANDLER_TIMEOUT' ? code : 'INTERNAL';
}

/** The refusal of a body beyond its route's limit; it closes the connection, because the rest may still come. */
export function bodyTooLarge(): HttpProblem {
  const headers = { connection: 'close' };
  return new HttpProblem(413, 'BODY_TOO_LARGE', reasonPhrase(413), { headers });
}
