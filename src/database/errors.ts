/** The store cannot answer now; nothing was acknowledged. A door answers 503. */
export class StoreUnavailableError extends Error {
  override readonly name = 'StoreUnavailableError';
  readonly code = 'STORE_UNAVAILABLE';
}

/** The database cannot be opened; the start ends with this message. */
export class DatabaseOpenError extends Error {
  override readonly name = 'DatabaseOpenError';
  readonly code = 'DATABASE_OPEN';
}
