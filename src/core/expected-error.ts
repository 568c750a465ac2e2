import type { ErrorCode } from './error-codes.ts';

/** An error that the user can mend: a command that ends with it shows the message, not the stack. */
export abstract class ExpectedError extends Error {
  /** A stable code for programs and logs. */
  abstract readonly code: ErrorCode;
}

/** Whether an error is an ExpectedError, also one of another bundle of this package, which has a class of its own. */
export function isExpected(error: unknown): error is ExpectedError {
  return error instanceof Error && 'exitCode' in error;
}
