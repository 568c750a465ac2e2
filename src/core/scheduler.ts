const SLICE = 4;

interface Waiting {
  /** When the operation began; the earliest goes first when the limit on text is reached. */
  readonly since: number;
  readonly go: () => void;
}

/**
 * Schedules time slices for the long operations of a door. One operation runs in each turn of the event loop,
 * so other requests wait for at most one slice, however many operations there are. When their text exceeds
 * the bound, only the oldest runs until it is done.
 */
export class CooperativeScheduler {
  readonly #maxHeld: number;
  readonly #waiting: Waiting[] = [];
  #held = 0;
  #isScheduled = false;

  /** The longest time for which a run may hold the event loop, in milliseconds. */
  readonly slice: number;

  /** `maxHeld`: bytes of text that all unfinished results together may hold. */
  constructor(maxHeld: number, slice = SLICE) {
    this.#maxHeld = maxHeld;
    this.slice = slice;
  }

  /** Bytes of text that unfinished results hold. */
  get held(): number {
    return this.#held;
  }

  /** Whether the held text exceeds the bound, so that only the oldest operation runs. */
  get isFull(): boolean {
    return this.#held > this.#maxHeld;
  }

  /** Resolves when the caller may continue; `since` is when its operation began. */
  next(since: number): Promise<void> {
    return new Promise((go) => {
      this.#waiting.push({ since, go });
      this.#schedule();
    });
  }

  hold(bytes: number): void {
    this.#held += bytes;
  }

  release(bytes: number): void {
    this.#held -= bytes;
  }

  #schedule(): void {
    if (this.#isScheduled || this.#waiting.length === 0) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      const index = this.isFull ? this.#eldest() : 0;
      const [chosen] = this.#waiting.splice(index, 1);
      chosen?.go();
      this.#schedule();
    });
  }

  #eldest(): number {
    let index = 0;
    for (const [i, { since }] of this.#waiting.entries()) {
      if (since < (this.#waiting[index]?.since ?? since)) index = i;
    }
    return index;
  }
}

/** Divides the work of one operation, so that the event loop turns while it goes on. */
export class TimeSlice {
  #since = performance.now();

  /** Whether the operation has held the event loop for long enough. */
  get isOver(): boolean {
    return performance.now() - this.#since > SLICE;
  }

  /** Resolves in a later turn. */
  async next(): Promise<void> {
    await new Promise(setImmediate);
    this.#since = performance.now();
  }
}

/** A value, or a promise of one if the engine is asynchronous. */
export type MaybePromise<T> = T | Promise<T>;

/** Calls `use` with the value, at once if it is no promise, so that a synchronous engine costs no tick. */
export function whenReady<T, R>(value: MaybePromise<T>, use: (value: T) => MaybePromise<R>): MaybePromise<R> {
  return value instanceof Promise ? value.then(use) : use(value);
}

/** Whether a value is a promise, of any class. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as { readonly then?: unknown } | null | undefined)?.then === 'function';
}
