import { ExpectedError } from '../../core/expected-error.ts';

/** A secret that the scheme cannot work with. The message never holds the secret. */
export class UnusableSecretError extends ExpectedError {
  override readonly name = 'UnusableSecretError';
  readonly code = 'UNUSABLE_SECRET';

  /** `problem` completes "A secret …". */
  constructor(problem: string) {
    super(`A secret ${problem}`);
  }
}

/** A request that cannot be signed as it is. */
export class UnsignableError extends ExpectedError {
  override readonly name = 'UnsignableError';
  readonly code = 'UNSIGNABLE';
}
