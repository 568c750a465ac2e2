import { ExpectedError } from '../../core/expected-error.ts';

/** A command was called wrongly; it ends with this message and exit code 2. */
export class UsageError extends ExpectedError {
  override readonly name = 'UsageError';
  readonly code = 'USAGE';
  /** Everything that is wrong, one line each. No line shows the value of a secret. */
  readonly problems: readonly string[];

  /** `topic` is what `portico help` tells more about, if anything: `deliveries list`, or empty for all commands. */
  constructor(problems: readonly string[], topic?: string) {
    const more = topic === undefined ? [] : [`${`portico help ${topic}`.trimEnd()} tells more.`];
    super([...problems, ...more].join('\n'));
    this.problems = problems;
  }

  override get exitCode(): 2 {
    return 2;
  }
}
