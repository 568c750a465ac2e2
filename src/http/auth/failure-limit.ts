import { HttpProblem } from '../problem.ts';
import { AttemptLimit } from './attempt-limit.ts';

export interface FailureLimitOptions {
  /** Failed attempts of one address within a minute after which it has to wait; default 10, 0 for no limit. */
  readonly maxFailures?: number | undefined;
  /** Called when an address reaches that limit. */
  readonly onLimit?: ((address: string) => void) | undefined;
  /** A monotonic clock, in milliseconds. */
  readonly now?: () => number;
}

const WINDOW = 60_000;
const MAX_ADDRESSES = 10_000;

/** The limit on failed attempts of one address, for all ways to authenticate at a door. */
export class FailureLimit {
  readonly #limit: AttemptLimit;
  readonly #onLimit: (address: string) => void;

  constructor({
    maxFailures = 10,
    onLimit = () => {},
    now = () => performance.now(),
  }: FailureLimitOptions = {}) {
    const max = maxFailures === 0 ? Number.POSITIVE_INFINITY : maxFailures;
    this.#limit = new AttemptLimit({ max, windowMs: WINDOW, maxAddresses: MAX_ADDRESSES, now });
    this.#onLimit = onLimit;
  }

  /** The refusal of an attempt from a source that has to wait; undefined when it may try. */
  refusal(source: string): HttpProblem | undefined {
    const wait = this.#limit.waitOf(source);
    if (wait <= 0) return undefined;
    return new HttpProblem(429, 'TOO_MANY_ATTEMPTS', 'Too many failed log-ins from here; wait a while', {
      headers: { 'retry-after': String(Math.ceil(wait / 1_000)) },
    });
  }

  /** Counts a failure. */
  fail(source: string): void {
    if (this.#limit.fail(source)) this.#onLimit(source);
  }

  /**
   * Counts a failure before the outcome of a check is known, or a thousand concurrent guesses would all be checked.
   * The result settles it.
   */
  expectFailure(source: string): (hasFailed: boolean) => void {
    const reached = this.#limit.fail(source);
    return (hasFailed) => {
      if (!hasFailed) this.#limit.forgive(source);
      else if (reached) this.#onLimit(source);
    };
  }
}
