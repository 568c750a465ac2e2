import { ExpectedError } from '../../core/expected-error.ts';

/** A move was refused or stopped; the message says what to do. */
export class MoveError extends ExpectedError {
  override readonly name = 'MoveError';
  readonly code = 'MOVE';
}

/** The error while another process uses one of the databases. */
export function inUse(which: 'source' | 'target'): MoveError {
  return new MoveError(
    `The ${which} is in use by another process. Stop every service that runs on it, and try again.`,
  );
}
