import type { ErrorCode } from './error-codes.ts';

/** Describes any thrown value in one line, like `TypeError: no host`. */
export function describeError(error: unknown): string {
  try {
    if (!(error instanceof Error)) return `Error: ${String(error)}`;
    return `${error.name}: ${error.message || hint(error)}`;
  } catch {
    return 'Error: something was thrown that cannot be described';
  }
}

/** A refused connection to a host with two addresses has no message, only a code. */
function hint(error: Error): string {
  const { code, errors } = error as { readonly code?: unknown; readonly errors?: unknown };
  if (typeof code === 'string') return code;
  const first: unknown = Array.isArray(errors) ? errors[0] : undefined;
  return first instanceof Error ? first.message : 'no message';
}

/** Marks expected errors across bundles, each of which has its own copy of the class. */
const EXPECTED = Symbol.for('portico.expected');

/** An error that the user can fix: a command that fails with it prints the message without the stack. */
export abstract class ExpectedError extends Error {
  readonly [EXPECTED] = true;
  /** A stable code for programs and logs. */
  abstract readonly code: ErrorCode;
}

/** Whether an error is an ExpectedError, of this bundle or another. */
export function isExpected(error: unknown): error is ExpectedError {
  return error instanceof Error && EXPECTED in error;
}

/** The store cannot answer now, and nothing was stored. A door answers 503. */
export class StoreUnavailableError extends ExpectedError {
  override readonly name: string = 'StoreUnavailableError';
  readonly code: 'STORE_UNAVAILABLE' | 'OUTCOME_UNKNOWN' = 'STORE_UNAVAILABLE';
}

/** A write was sent, but whether it was committed is unknown; a blind retry may apply it twice. */
export class OutcomeUnknownError extends StoreUnavailableError {
  override readonly name = 'OutcomeUnknownError';
  override readonly code = 'OUTCOME_UNKNOWN';
}

/** A statement took longer than any may, and was ended; it has stored nothing. */
export class StatementTimeError extends Error {
  override readonly name = 'StatementTimeError';

  constructor(cause?: unknown) {
    super('The statement took too long', { cause });
  }
}

/** The database cannot be opened; startup fails with this message. */
export class DatabaseOpenError extends ExpectedError {
  override readonly name = 'DatabaseOpenError';
  readonly code = 'DATABASE_OPEN';
}
