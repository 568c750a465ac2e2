/** How often a clock counts, in milliseconds. */
const STEP = 5;

/**
 * A clock that stands still while this process does: on a busy machine that can be for seconds. What has to be quick is
 * measured by it, on both sides: the timers of the program under test are as late as ours.
 */
export class RunningTime implements Disposable {
  #counted = 0;
  #at = performance.now();
  readonly #timer = setInterval(() => this.#count(), STEP);

  /** Time in which the process ran since the clock was made, in milliseconds. */
  get elapsed(): number {
    this.#count();
    return this.#counted;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #count(): void {
    const now = performance.now();
    this.#counted += Math.min(now - this.#at, 2 * STEP);
    this.#at = now;
  }
}

/** Resolves or rejects as `work` does, or rejects when it takes longer than `limit` milliseconds of running time. */
export async function within<T>(limit: number, work: () => T): Promise<Awaited<T>> {
  using time = new RunningTime();
  const { promise: late, reject } = Promise.withResolvers<never>();
  const look = setInterval(() => {
    if (time.elapsed > limit) reject(new Error(`it takes longer than ${limit} ms`));
  }, STEP);
  try {
    return await Promise.race([work(), late]);
  } finally {
    clearInterval(look);
  }
}
