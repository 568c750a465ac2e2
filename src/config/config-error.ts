import { ExpectedError } from '../core/expected-error.ts';

/** The configuration cannot be used; the start ends with this message and exit code 2. */
export class ConfigError extends ExpectedError {
  override readonly name = 'ConfigError';
  readonly code = 'CONFIG_INVALID';
  /** All problems, one line each; none shows a secret. */
  readonly problems: readonly string[];

  constructor(problems: readonly string[], options?: ErrorOptions) {
    super(
      `The configuration is not valid:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`,
      options,
    );
    this.problems = problems;
  }
}
