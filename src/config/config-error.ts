import { ExpectedError } from '../core/expected-error.ts';

/** The configuration cannot be used; the start ends with this message and exit code 2. */
export class ConfigError extends ExpectedError {
  override readonly name = 'ConfigError';
  readonly code = 'CONFIG_INVALID';
  /** All problems, one line each; none shows a secret. */
  readonly problems: readonly string[];

  /** `what` is not valid: the configuration, unless the problems are those of the command line alone. */
  constructor(problems: readonly string[], options?: ErrorOptions, what = 'configuration') {
    super(`The ${what} is not valid:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`, options);
    this.problems = problems;
  }
}
