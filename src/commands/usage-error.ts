import { ExpectedError } from '../core/expected-error.ts';

/** A command was called wrongly; it ends with this message and exit code 2. */
export class UsageError extends ExpectedError {
  override readonly name = 'UsageError';
  readonly code = 'USAGE';

  /** `topic` is what `portico help` says more about. */
  constructor(problems: readonly string[], topic: string) {
    super([...problems, `portico help ${topic} tells more.`].join('\n'));
  }

  override get exitCode(): 2 {
    return 2;
  }
}
