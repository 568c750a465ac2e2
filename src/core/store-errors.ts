/** The store cannot answer now; nothing was acknowledged. A door answers 503. */
export class StoreUnavailableError extends Error {
  override readonly name: string = 'StoreUnavailableError';
  readonly code: string = 'STORE_UNAVAILABLE';
}

/** A write was sent and nobody knows whether it is stored, or will stay so. Sent again blindly, it may happen twice. */
export class OutcomeUnknownError extends StoreUnavailableError {
  override readonly name = 'OutcomeUnknownError';
  override readonly code = 'OUTCOME_UNKNOWN';
}

/** The database cannot be opened; the start ends with this message. */
export class DatabaseOpenError extends Error {
  override readonly name = 'DatabaseOpenError';
  readonly code = 'DATABASE_OPEN';
}
