import { HttpProblem } from '@portico/transport';

/** The rate that each client may use. */
export interface RateRule {
  /** Average number of requests per window. */
  readonly limit: number;
  /** Length of a window, in milliseconds. */
  readonly windowMs: number;
  /** Requests that a client may send at once after a pause. */
  readonly burst: number;
}

/** The remaining quota of a client. */
interface Quota {
  /** Whether the request is within the rate. */
  readonly isWithin: boolean;
  /** Requests that the client may send at once now. */
  readonly remaining: number;
  /** The time until the client may send the next request, in milliseconds; 0 for now. */
  readonly wait: number;
  /** The time until the client may use the whole burst again, in milliseconds. */
  readonly reset: number;
}

/** Maximum number of tracked clients. */
const MAX_CLIENTS = 50_000;

/**
 * Limits the rate of each client with GCRA: one number per client, the time at which its token bucket is full
 * again. A client with a full bucket needs no entry, so entries live in two generations, each as long as a
 * bucket takes to fill. Beyond the maximum number of clients the older generation is dropped early, which
 * gives its clients a new burst.
 */
export class ClientRate {
  /** The value of RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers-10). */
  readonly #policy: string;
  readonly #maxClients: number;
  readonly #interval: number;
  readonly #fill: number;
  #young = new Map<string, number>();
  #old = new Map<string, number>();
  #rotateAt = 0;

  constructor(rule: RateRule, maxClients = MAX_CLIENTS) {
    const { limit, windowMs, burst } = rule;
    const sustained = `${POLICY};q=${limit};w=${seconds(windowMs)}`;
    this.#policy = burst === limit ? sustained : `${sustained}, "burst";q=${burst}`;
    this.#maxClients = maxClients;
    this.#interval = windowMs / limit;
    this.#fill = this.#interval * burst;
  }

  get clients(): number {
    return this.#young.size + this.#old.size;
  }

  /** Counts a request of a client unless it exceeds the rate; `now` is a monotonic clock in milliseconds. */
  take(client: string, now: number): Quota {
    const full = Math.max(this.#fullAt(client, now), now);
    const next = full + this.#interval;
    const wait = next - this.#fill - now;
    // Tolerates floating-point error.
    if (wait > 1e-6) return { isWithin: false, remaining: 0, wait, reset: full - now };
    this.#young.set(client, next);
    return { isWithin: true, remaining: this.#left(next - now), wait: 0, reset: next - now };
  }

  /** The fields RateLimit and RateLimit-Policy of a quota. */
  fieldsOf({ remaining, reset }: Quota): Readonly<Record<string, string>> {
    const ratelimit = `${POLICY};r=${remaining};t=${seconds(reset)}`;
    return { 'ratelimit-policy': this.#policy, ratelimit };
  }

  /** The refusal of a request that exceeds the rate; undefined if it is within. */
  refusalOf({ isWithin, wait }: Quota): HttpProblem | undefined {
    if (isWithin) return undefined;
    return new HttpProblem(429, 'RATE_LIMITED', 'Too many requests; wait a while', {
      headers: { 'retry-after': String(Math.max(1, seconds(wait))) },
    });
  }

  #left(untilFull: number): number {
    return Math.max(0, Math.floor((this.#fill - untilFull) / this.#interval + 1e-6));
  }

  #fullAt(client: string, now: number): number {
    if (now >= this.#rotateAt || 2 * this.#young.size >= this.#maxClients) {
      this.#old = this.#young;
      this.#young = new Map();
      this.#rotateAt = now + this.#fill;
    }
    return this.#young.get(client) ?? this.#old.get(client) ?? 0;
  }
}

/** The name of the policy in the header fields. */
const POLICY = '"client"';

/** Milliseconds as whole seconds, rounded up. */
function seconds(ms: number): number {
  return Math.ceil(Math.max(0, ms) / 1_000 - 1e-9);
}

/** Delays beyond which a service refuses requests. */
interface LoadLimits {
  /** Delay of the event loop, in milliseconds; 0 for no limit. */
  readonly maxLoopDelay: number;
  /** Time that a write has waited for its commit, in milliseconds; 0 for no limit. */
  readonly maxWriteDelay: number;
  /** The time that a write waits for its commit now, in milliseconds. */
  readonly writeDelay: () => number;
}

/** How often the event loop delay is measured, in milliseconds. */
const INTERVAL = 50;

/** Refuses requests while the service is overloaded; measures the event loop from the first request on. */
export class Load implements Disposable {
  readonly #limits: LoadLimits;
  #timer: NodeJS.Timeout | undefined;
  #loopIsLate = false;

  constructor(limits: LoadLimits) {
    this.#limits = limits;
  }

  /** The refusal of a request that arrives now; undefined if the service is not overloaded. */
  refusal(need: 'read' | 'write' | undefined): HttpProblem | undefined {
    if (this.#limits.maxLoopDelay > 0) this.#timer ??= this.#watchLoop();
    if (this.#loopIsLate) return LATE;
    const { maxWriteDelay, writeDelay } = this.#limits;
    if (need !== 'write' || maxWriteDelay === 0) return undefined;
    return writeDelay() > maxWriteDelay ? WRITES_LATE : undefined;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #watchLoop(): NodeJS.Timeout {
    let expected = performance.now() + INTERVAL;
    // Timers run before the requests that have arrived in the meantime, so these see the new value.
    return setInterval(() => {
      const now = performance.now();
      this.#loopIsLate = now - expected > this.#limits.maxLoopDelay;
      expected = now + INTERVAL;
    }, INTERVAL).unref();
  }
}

const options = { headers: { 'retry-after': '1' } };
const LATE = new HttpProblem(503, 'OVERLOADED', 'The service is late; try again later', options);
const WRITES_LATE = new HttpProblem(503, 'OVERLOADED', 'Writes are late; try again later', options);
