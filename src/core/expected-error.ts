import type { ErrorCode } from './error-codes.ts';

/** An error that the user can mend: a command that ends with it shows the message, not the stack. */
export abstract class ExpectedError extends Error {
  /** A stable code for programs and logs. */
  abstract readonly code: ErrorCode;
}
