import type { Attempt } from './attempt.ts';

/** Maximum size of the bodies of all running attempts of a process, in bytes; one body for each target comes on top. */
const MAX_CLAIMED_BYTES = 64 * 1024 * 1024;

/** What a claim may take; it is given back when its attempts have ended. */
interface ClaimShare {
  readonly bytes: number;
  /** Gives back what the claim has not taken. */
  settle(taken: number): void;
}

/** Bounds the bodies that the running attempts of all targets hold together. */
export class ClaimedBytes {
  readonly #max: number;
  #held = 0;
  /** With the priority of each. */
  readonly #waiting = new Map<() => void, number>();

  constructor(max = MAX_CLAIMED_BYTES) {
    this.#max = max;
  }

  /** Whether nothing is left. */
  get isFull(): boolean {
    return this.#held >= this.#max;
  }

  /** Sets aside half of what is left, so that claims at the same time cannot exceed the limit together. */
  share(): ClaimShare {
    return this.#setAside(Math.max(0, Math.ceil((this.#max - this.#held) / 2)));
  }

  /** Sets aside so many bytes; undefined when they are not left. */
  reserve(bytes: number): ClaimShare | undefined {
    return bytes > this.#max - this.#held ? undefined : this.#setAside(bytes);
  }

  #setAside(bytes: number): ClaimShare {
    this.#held += bytes;
    return { bytes, settle: (taken) => this.release(bytes - taken) };
  }

  /** Gives back the bodies of ended attempts. */
  release(bytes: number): void {
    this.#held -= bytes;
    if (this.#waiting.size === 0 || this.isFull) return;
    const waiting = [...this.#waiting].sort(([, one], [, other]) => other - one);
    this.#waiting.clear();
    for (const [wake] of waiting) wake();
  }

  /** Calls back once there is something left again, those with a higher priority first. */
  onRoom(wake: () => void, priority = 0): void {
    this.#waiting.set(wake, priority);
  }
}

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

/** How long claimed jobs may wait for a slot, about, in milliseconds. */
const AHEAD = 200;
/** Maximum number of jobs that wait for a slot. */
const MAX_AHEAD = 256;

/**
 * How many jobs a worker claims ahead, so that its handlers run while it claims others and records how they ended: as many
 * as ended in the last 200 ms. So next to nothing is claimed ahead for slow handlers, which other processes could run.
 */
export class Prefetch {
  #since = 0;
  #ended = 0;
  #before = 0;

  /** Notes that a handler has ended; `now` is `performance.now()`. */
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
