/** The user agent of `portico health`: a health check of a container sends no requests elsewhere, so no stop waits for it. */
export const HEALTH_COMMAND = 'portico-health';

/** The linger where nobody probes readiness, in milliseconds. */
const USUAL_LINGER = 300;
/** Balancers mostly take a process out after three failures. */
const PROBES = 3;
/** What a probe may take beyond its interval, in milliseconds. */
const PROBE_TIME = 500;
/** The longest linger that is chosen for a prober, in milliseconds. */
export const MAX_LINGER = 10_000;
/** A prober that was not seen for so long is none any more, in milliseconds. */
const PROBER_GONE = 60_000;

/** Whether this process accepts new requests: from when all doors listen until the stop begins. */
export class Readiness {
  #accepting = false;
  #probedAt = Number.NEGATIVE_INFINITY;
  #interval = Number.POSITIVE_INFINITY;

  get accepting(): boolean {
    return this.#accepting;
  }

  /** Called once all doors listen. */
  accept(): void {
    this.#accepting = true;
  }

  /** The stop has begun: readiness fails first, then the doors drain. */
  refuse(): void {
    this.#accepting = false;
  }

  /** Called for each probe of readiness, with the time of `performance.now()`. */
  probed(now: number): void {
    this.#interval = now - this.#probedAt;
    this.#probedAt = now;
  }

  /** The time between the last two probes, in milliseconds; undefined when nobody probes readiness now. */
  interval(now: number): number | undefined {
    return now - this.#probedAt > PROBER_GONE || this.#interval > PROBER_GONE ? undefined : this.#interval;
  }

  /**
   * How long a stop should go on answering so that whoever probes readiness sees it fail and sends requests elsewhere,
   * in milliseconds: the time of three probes, at most ten seconds.
   */
  linger(now: number): number {
    const interval = this.interval(now);
    if (interval === undefined) return USUAL_LINGER;
    return Math.min(Math.max(PROBES * interval + PROBE_TIME, USUAL_LINGER), MAX_LINGER);
  }
}
