/** Maximum delay of a timer, in milliseconds; what takes longer is looked at again then. */
const MAX_TIMER = 2 ** 31 - 1;
/** Waits for this part of a burst at most, so that a high rate needs few claims. */
const BURST_SHARE = 0.5;

/** How many attempts may begin: `burst` at once, then so many per millisecond. */
interface ClaimRate {
  readonly perMs: number;
  readonly burst: number;
}

/**
 * Says how many attempts of a target may begin now in this process: by a rate, a token bucket, and while a pause lasts
 * none. Jobs that have to wait are not claimed, so they hold no lease and use no attempt.
 */
export class ClaimRateLimit {
  readonly #rate: ClaimRate | undefined;
  readonly #now: () => number;
  #tokens: number;
  /** When `#tokens` was right. */
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

  /** Whether a pause lasts; one can begin while a claim is under way. */
  get isPaused(): boolean {
    return this.#now() < this.#pausedUntil;
  }

  /** How many attempts may begin now. */
  get free(): number {
    if (this.isPaused) return 0;
    this.#refill();
    return Math.floor(this.#tokens);
  }

  /** So many attempts begin now. */
  take(attempts: number): void {
    this.#tokens -= attempts;
  }

  /** Lets no attempt begin for so many milliseconds. */
  pause(time: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, this.#now() + time);
  }

  /** Calls back once attempts may begin again, for the last one that asked; returns the wait in milliseconds. */
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
