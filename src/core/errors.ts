import type { ErrorCode } from './error-codes.ts';

/** Names a failure in one line, like `TypeError: no host`; whatever was thrown. */
export function describeError(error: unknown): string {
  try {
    if (!(error instanceof Error)) return `Error: ${String(error)}`;
    return `${error.name}: ${error.message || hint(error)}`;
  } catch {
    return 'Error: something was thrown that cannot be described';
  }
}

/** A refused connection to a host with two addresses has no message of its own, only a code. */
function hint(error: Error): string {
  const { code, errors } = error as { readonly code?: unknown; readonly errors?: unknown };
  if (typeof code === 'string') return code;
  const first: unknown = Array.isArray(errors) ? errors[0] : undefined;
  return first instanceof Error ? first.message : 'no message';
}

/** The same in every bundle of this package, each of which has a class of its own. */
const EXPECTED = Symbol.for('portico.expected');

/** An error that the user can mend: a command that ends with it shows the message, not the stack. */
export abstract class ExpectedError extends Error {
  readonly [EXPECTED] = true;
  /** A stable code for programs and logs. */
  abstract readonly code: ErrorCode;
}

/** Whether an error is an ExpectedError, of this bundle or another. */
export function isExpected(error: unknown): error is ExpectedError {
  return error instanceof Error && EXPECTED in error;
}

/** The store cannot answer now; nothing was acknowledged. A door answers 503. */
export class StoreUnavailableError extends ExpectedError {
  override readonly name: string = 'StoreUnavailableError';
  readonly code: 'STORE_UNAVAILABLE' | 'OUTCOME_UNKNOWN' = 'STORE_UNAVAILABLE';
}

/** A write was sent, but whether it is durable is unknown; a blind retry may apply it twice. */
export class OutcomeUnknownError extends StoreUnavailableError {
  override readonly name = 'OutcomeUnknownError';
  override readonly code = 'OUTCOME_UNKNOWN';
}

/** The database cannot be opened; the start ends with this message. */
export class DatabaseOpenError extends ExpectedError {
  override readonly name = 'DatabaseOpenError';
  readonly code = 'DATABASE_OPEN';
}
