import { HttpProblem } from '@portico/transport';
import type { Permission } from './permission.ts';

/** How many requests a client may make. */
export interface RateRule {
  /** Requests in a window on average. */
  readonly limit: number;
  /** Of a window, in milliseconds. */
  readonly windowMs: number;
  /** Requests that may come at once after a pause. */
  readonly burst: number;
}

/** What a client has left. */
interface Quota {
  /** Whether the request is within the rate. */
  readonly isWithin: boolean;
  /** Requests that may come at once now. */
  readonly remaining: number;
  /** The time until the next request may come, in milliseconds; 0 for now. */
  readonly wait: number;
  /** The time until all of the burst may come again, in milliseconds. */
  readonly reset: number;
}

/** Maximum clients that are told apart. */
const MAX_CLIENTS = 50_000;

/**
 * The rate of each client, as a bucket of tokens that is one number: the time at which it would be full (GCRA). A client
 * whose bucket is full needs no entry, so entries live in two generations, each for as long as a bucket takes to fill; past
 * the limit of clients the older one is forgotten early, which gives its clients a new burst.
 */
export class ClientRate {
  readonly rule: RateRule;
  readonly #maxClients: number;
  readonly #interval: number;
  readonly #fill: number;
  #young = new Map<string, number>();
  #old = new Map<string, number>();
  #rotateAt = 0;

  constructor(rule: RateRule, maxClients = MAX_CLIENTS) {
    this.rule = rule;
    this.#maxClients = maxClients;
    this.#interval = rule.windowMs / rule.limit;
    this.#fill = this.#interval * rule.burst;
  }

  /** Clients that are told apart now. */
  get clients(): number {
    return this.#young.size + this.#old.size;
  }

  /** Counts a request of a client, unless it is beyond the rate; `now` is a monotonic clock in milliseconds. */
  take(client: string, now: number): Quota {
    const full = Math.max(this.#fullAt(client, now), now);
    const next = full + this.#interval;
    const wait = next - this.#fill - now;
    // Of times that are divided and added a little is lost.
    if (wait > 1e-6) return { isWithin: false, remaining: 0, wait, reset: full - now };
    this.#young.set(client, next);
    return { isWithin: true, remaining: this.#left(next - now), wait: 0, reset: next - now };
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

/** The name of the policy in the fields. */
const POLICY = '"client"';

/** Writes the fields of a rate, RateLimit and RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers-10). */
export function rateFields({ limit, windowMs, burst }: RateRule) {
  const sustained = `${POLICY};q=${limit};w=${seconds(windowMs)}`;
  const policy = burst === limit ? sustained : `${sustained}, "burst";q=${burst}`;
  return ({ remaining, reset }: Quota): Readonly<Record<string, string>> => ({
    'ratelimit-policy': policy,
    ratelimit: `${POLICY};r=${remaining};t=${seconds(reset)}`,
  });
}

/** In whole seconds, and one at least where it is any time at all. */
export function seconds(ms: number): number {
  return Math.ceil(Math.max(0, ms) / 1_000 - 1e-9);
}

/** How late a service may be before it refuses requests. */
interface LoadLimits {
  /** Delay of the event loop, in milliseconds; 0 for no limit. */
  readonly maxLoopDelay: number;
  /** Time that a write has waited for its commit, in milliseconds; 0 for no limit. */
  readonly maxWriteDelay: number;
  /** The time that a write waits for its commit now, in milliseconds. */
  readonly writeDelay: () => number;
}

/** How often the event loop is looked at, in milliseconds. */
const INTERVAL = 50;

/**
 * Refuses what a service that is late could only make later. It watches the event loop from the first request on: what the
 * start has kept busy is no reason to refuse one.
 */
export class Load implements Disposable {
  readonly #limits: LoadLimits;
  #timer: NodeJS.Timeout | undefined;
  #loopIsLate = false;

  constructor(limits: LoadLimits) {
    this.#limits = limits;
  }

  /** Why a request is refused now; undefined when there is no reason. */
  refusal(need: Permission | undefined): HttpProblem | undefined {
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
    // Timers come before the requests that have arrived meanwhile.
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
