import type { Attempt } from './attempt.ts';

/** Maximum total size of the bodies of a process's running attempts in bytes, plus one body per target. */
const MAX_CLAIMED_BYTES = 64 * 1024 * 1024;

/** Bytes reserved for a claim; they are released when its attempts have ended. */
interface ClaimShare {
  readonly bytes: number;
  /** Releases the bytes that the claim did not use. */
  settle(taken: number): void;
}

/** Bounds the total size of the bodies that the running attempts of all targets hold. */
export class ClaimedBytes {
  readonly #max: number;
  #held = 0;
  /** Callbacks with their priorities. */
  readonly #waiting = new Map<() => void, number>();

  constructor(max = MAX_CLAIMED_BYTES) {
    this.#max = max;
  }

  /** Whether all bytes are reserved. */
  get isFull(): boolean {
    return this.#held >= this.#max;
  }

  /** Reserves half of the free bytes, so that concurrent claims cannot exceed the limit together. */
  share(): ClaimShare {
    return this.#setAside(Math.max(0, Math.ceil((this.#max - this.#held) / 2)));
  }

  /** Reserves `bytes`; undefined if not enough are free. */
  reserve(bytes: number): ClaimShare | undefined {
    return bytes > this.#max - this.#held ? undefined : this.#setAside(bytes);
  }

  #setAside(bytes: number): ClaimShare {
    this.#held += bytes;
    return { bytes, settle: (taken) => this.release(bytes - taken) };
  }

  /** Releases the bodies of ended attempts. */
  release(bytes: number): void {
    this.#held -= bytes;
    if (this.#waiting.size === 0 || this.isFull) return;
    const waiting = [...this.#waiting].sort(([, one], [, other]) => other - one);
    this.#waiting.clear();
    for (const [wake] of waiting) wake();
  }

  /** Calls `wake` once bytes are free again, higher priorities first. */
  onFree(wake: () => void, priority = 0): void {
    this.#waiting.set(wake, priority);
  }
}

/** An attempt that waited this long for a slot is late, in milliseconds: the handlers have become slow. */
const MAX_WAIT = 1_000;

/**
 * The attempts that a worker holds: those waiting for a slot, in order of arrival, and those running. They
 * are arrays because thousands come and go: V8 replaces the table of a Set every few hundred changes, and a
 * chain of old tables keeps the members from being collected as young objects.
 */
export class HeldAttempts implements Iterable<Attempt> {
  /** All attempts, in no particular order. */
  readonly #all: Attempt[] = [];
  /** The waiting attempts, from `#first` on. */
  #waiting: (Attempt | undefined)[] = [];
  #first = 0;
  readonly #onLate: (attempt: Attempt) => void;
  #timer: NodeJS.Timeout | undefined;

  /** Removes each attempt that has waited for a second and passes it to `onLate`. */
  constructor(onLate: (attempt: Attempt) => void) {
    this.#onLate = onLate;
  }

  get size(): number {
    return this.#all.length;
  }

  /** The number of waiting attempts. */
  get waiting(): number {
    return this.#waiting.length - this.#first;
  }

  [Symbol.iterator](): Iterator<Attempt> {
    return this.#all[Symbol.iterator]();
  }

  /** Adds a waiting attempt. */
  add(attempt: Attempt): void {
    attempt.place = this.#all.push(attempt) - 1;
    attempt.waitsSince = performance.now();
    this.#waiting.push(attempt);
  }

  /** Removes and returns the first waiting attempt; from now on it counts as running. */
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

  /** Removes a running attempt. */
  delete(attempt: Attempt): void {
    const last = this.#all.pop();
    if (last === undefined || last === attempt) return;
    this.#all[attempt.place] = last;
    last.place = attempt.place;
  }

  /** Checks for late attempts as long as any are waiting. */
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

/** Roughly how long claimed jobs may wait for a slot, in milliseconds. */
const AHEAD = 200;
/** Maximum number of jobs waiting for a slot. */
const MAX_AHEAD = 256;

/**
 * Decides how many jobs a worker claims ahead, so that handlers run while it claims and records: as many as
 * ended in the last 200 ms. A slow handler thus claims almost nothing ahead, which leaves its jobs to other
 * processes.
 */
export class Prefetch {
  #since = 0;
  #ended = 0;
  #before = 0;

  /** Counts an ended handler; `now` is `performance.now()`. */
  note(now: number): void {
    this.#turn(now);
    this.#ended++;
  }

  /** The number of jobs to claim beyond the free slots. */
  ahead(now: number): number {
    this.#turn(now);
    return Math.min(MAX_AHEAD, Math.max(this.#ended, this.#before));
  }

  #turn(now: number): void {
    const passed = now - this.#since;
    if (passed < AHEAD) return;
    this.#before = passed < 2 * AHEAD ? this.#ended : 0;
    this.#ended = 0;
    this.#since = now;
  }
}
