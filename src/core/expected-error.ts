import type { ErrorCode } from './error-codes.ts';

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
