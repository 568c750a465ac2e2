import type { Attempt } from './attempt.ts';

/** An attempt that found no slot for so long is late, in milliseconds: the handlers have become slow. */
const MAX_WAIT = 1_000;

/**
 * The attempts at the jobs that a worker holds: those that wait for a slot, in the order in which they came, and those that
 * have begun. Arrays, because members come and go by the thousand: V8 replaces the table of a Set every few hundred
 * changes, and a chain of old tables keeps the members of each from being collected with the young objects.
 */
export class HeldAttempts implements Iterable<Attempt> {
  /** All of them, in no order. */
  readonly #all: Attempt[] = [];
  /** Those that wait, from `#first` on. */
  #waiting: (Attempt | undefined)[] = [];
  #first = 0;
  readonly #onLate: (attempt: Attempt) => void;
  #timer: NodeJS.Timeout | undefined;

  /** Takes out what has waited for a second, and calls `onLate` with it. */
  constructor(onLate: (attempt: Attempt) => void) {
    this.#onLate = onLate;
  }

  get size(): number {
    return this.#all.length;
  }

  /** The number of those that wait. */
  get waiting(): number {
    return this.#waiting.length - this.#first;
  }

  [Symbol.iterator](): Iterator<Attempt> {
    return this.#all[Symbol.iterator]();
  }

  /** Adds one that waits. */
  add(attempt: Attempt): void {
    attempt.place = this.#all.push(attempt) - 1;
    attempt.waitsSince = performance.now();
    this.#waiting.push(attempt);
  }

  /** The first one that waits; it counts as begun from now on. */
  take(): Attempt | undefined {
    const first = this.#waiting[this.#first];
    if (first === undefined) return undefined;
    this.#waiting[this.#first++] = undefined;
    if (this.#first === this.#waiting.length) {
      this.#waiting = [];
      this.#first = 0;
    }
    first.waitsSince = undefined;
    return first;
  }

  /** Takes out one that has begun. */
  delete(attempt: Attempt): void {
    const last = this.#all.pop();
    if (last === undefined || last === attempt) return;
    this.#all[attempt.place] = last;
    last.place = attempt.place;
  }

  /** Looks for late ones as long as some wait. */
  watch(): void {
    if (this.waiting > 0) this.#timer ??= setTimeout(this.#takeLate, MAX_WAIT);
  }

  readonly #takeLate = (): void => {
    this.#timer = undefined;
    const late = performance.now() - MAX_WAIT;
    while ((this.#waiting[this.#first]?.waitsSince ?? Number.POSITIVE_INFINITY) <= late) {
      const attempt = this.take();
      if (attempt !== undefined) this.#onLate(attempt);
    }
    this.watch();
  };
}
