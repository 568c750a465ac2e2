import type { Attempt } from './attempt.ts';

/** An attempt that found no slot for so long is late, in milliseconds: the handlers have become slow. */
const MAX_WAIT = 1_000;

/** The attempts at claimed jobs that wait for a slot, in the order in which they were claimed. */
export class ReadyAttempts {
  readonly #waiting: { readonly attempt: Attempt; readonly since: number }[] = [];
  readonly #onLate: (attempt: Attempt) => void;
  #timer: NodeJS.Timeout | undefined;

  /** Takes out what has waited for a second, and calls `onLate` with it. */
  constructor(onLate: (attempt: Attempt) => void) {
    this.#onLate = onLate;
  }

  get size(): number {
    return this.#waiting.length;
  }

  /** The numbers of the jobs. */
  get jobs(): readonly number[] {
    return this.#waiting.map(({ attempt }) => attempt.job.job);
  }

  add(attempt: Attempt): void {
    this.#waiting.push({ attempt, since: performance.now() });
  }

  /** Takes out the first one. */
  take(): Attempt | undefined {
    return this.#waiting.shift()?.attempt;
  }

  /** Looks for late ones as long as some wait. */
  watch(): void {
    if (this.#waiting.length > 0) this.#timer ??= setTimeout(this.#takeLate, MAX_WAIT);
  }

  readonly #takeLate = (): void => {
    this.#timer = undefined;
    const late = performance.now() - MAX_WAIT;
    for (let first = this.#waiting[0]; first !== undefined && first.since <= late; first = this.#waiting[0]) {
      this.#waiting.shift();
      this.#onLate(first.attempt);
    }
    this.watch();
  };
}
