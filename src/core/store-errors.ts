import { ExpectedError } from './expected-error.ts';

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
