/** Maximum delay of a timer, in milliseconds; a longer wait is checked again then. */
const MAX_TIMER = 2 ** 31 - 1;
/** Waits for at most this part of a burst, so that a high rate needs few claims. */
const BURST_SHARE = 0.5;

/** A token bucket: `burst` attempts may start at once, then `perMs` per millisecond. */
interface ClaimRate {
  readonly perMs: number;
  readonly burst: number;
}

/**
 * Limits how many attempts of a target may start in this process: by a token bucket, and to none during a
 * pause. Jobs that have to wait are not claimed, so they hold no lease and use up no attempt.
 */
export class ClaimRateLimit {
  readonly #rate: ClaimRate | undefined;
  readonly #now: () => number;
  #tokens: number;
  /** When `#tokens` was last updated. */
  #at: number;
  #pausedUntil = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `now` is a monotonic clock in milliseconds. */
  constructor(rate: ClaimRate | undefined, now = () => performance.now()) {
    this.#rate = rate;
    this.#now = now;
    this.#tokens = rate?.burst ?? Number.POSITIVE_INFINITY;
    this.#at = now();
  }

  /** Whether a pause is in effect; one can start while a claim is in progress. */
  get isPaused(): boolean {
    return this.#now() < this.#pausedUntil;
  }

  /** How many attempts may start now. */
  get free(): number {
    if (this.isPaused) return 0;
    this.#refill();
    return Math.floor(this.#tokens);
  }

  /** Counts attempts that start now. */
  take(attempts: number): void {
    this.#tokens -= attempts;
  }

  /** Lets no attempt start for `time` milliseconds. */
  pause(time: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, this.#now() + time);
  }

  /** Calls `wake` once attempts may start again, instead of earlier callbacks; returns the wait in ms. */
  onFree(wake: () => void): number {
    const wait = this.#wait();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(wake, Math.min(wait, MAX_TIMER)).unref();
    return wait;
  }

  #wait(): number {
    const pause = this.#pausedUntil - this.#now();
    if (this.#rate === undefined) return Math.max(0, Math.ceil(pause));
    this.#refill();
    const { perMs, burst } = this.#rate;
    const wanted = Math.max(1, Math.floor(burst * BURST_SHARE));
    return Math.max(0, Math.ceil(Math.max(pause, (wanted - this.#tokens) / perMs)));
  }

  #refill(): void {
    if (this.#rate === undefined) return;
    const now = this.#now();
    this.#tokens = Math.min(this.#rate.burst, this.#tokens + (now - this.#at) * this.#rate.perMs);
    this.#at = now;
  }
}
