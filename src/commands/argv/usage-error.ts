import { ExpectedError } from '../../core/expected-error.ts';

/** A command was called wrongly; it ends with this message and exit code 2. */
export class UsageError extends ExpectedError {
  override readonly name = 'UsageError';
  readonly code = 'USAGE';

  /**
   * `problems` are all that is wrong, a line each that shows no secret. `topic` is the argument of `portico help` to refer
   * to: `deliveries list`, or empty for all commands.
   */
  constructor(problems: readonly string[], topic?: string) {
    const more = topic === undefined ? [] : [`See "${`portico help ${topic}`.trimEnd()}".`];
    super([...problems, ...more].join('\n'));
  }
}
