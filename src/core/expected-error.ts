import type { ErrorCode } from './error-codes.ts';

/** An error that the user can mend: a command that ends with it shows the message, not the stack. */
export abstract class ExpectedError extends Error {
  /** A stable code for programs and logs. */
  abstract readonly code: ErrorCode;

  /** Exit code of a command that ends with this error; 2 where it was called or configured wrongly. */
  get exitCode(): 1 | 2 {
    return 1;
  }
}

/** Whether an error is an ExpectedError, also one of another bundle of this package, which has a class of its own. */
export function isExpected(error: unknown): error is ExpectedError {
  return error instanceof Error && 'exitCode' in error;
}
