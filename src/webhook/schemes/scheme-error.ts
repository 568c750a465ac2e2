/** A secret is invalid for its scheme. The message never contains the secret. */
export class UnusableSecretError extends Error {
  override readonly name = 'UnusableSecretError';
  readonly code = 'UNUSABLE_SECRET';

  /** `problem` completes "A secret …". */
  constructor(problem: string) {
    super(`A secret ${problem}`);
  }
}

/** A request cannot be signed. */
export class UnsignableError extends Error {
  override readonly name = 'UnsignableError';
  readonly code = 'UNSIGNABLE';
}
