import type { FastifyInstance } from 'fastify';
import { KnownCaller } from '../caller.ts';
import type { RequestContext } from '../endpoint.ts';
import { HttpProblem, reasonPhrase } from '../problem.ts';
import { LIMITS } from '../server/limits.ts';

/** The client whose share of a budget is used. */
type Client = Pick<RequestContext, 'caller' | 'client'>;

/** The sender of a body that arrives in pieces. */
export interface BodySender extends Client {
  /** Refuses the body to free its memory, which no longer counts. */
  refuse(problem: HttpProblem): void;
}

/** The options of a budget. */
export interface BodyBudgetOptions {
  /** Maximum total: bytes, or another unit that `grow` and `take` are called with. */
  readonly max: number;
  /**
   * Bodies that hold more are large; all large ones together may hold at most half of `max`. Default
   * unlimited.
   */
  readonly usual?: number;
  /** A monotonic clock, in milliseconds; default `performance.now`. */
  readonly now?: () => number;
}

const BUDGET = Symbol('portico.bodyBudget');

/** The share of a budget that one client keeps while others need memory. */
const CLIENT_SHARE = 0.25;
/** The extra share that evicting slow senders frees, so that not every body triggers a search. */
const SPARE = 1 / 64;
/** Slower bodies are evicted if others need memory, in bytes per millisecond: 1 MiB in 32 seconds. */
const MIN_RATE = 32.768;
/** A body is also evicted for one that arrives this many times faster. */
const MUCH_FASTER = 4;
/** Minimum time that a rate is measured over, in milliseconds; younger bodies do not count as slow. */
const WINDOW = 1_000;
/** Minimum age for calculating a rate, in milliseconds. */
const MIN_AGE = 100;
/** How long no further search is made for a client after one that freed too little, in milliseconds. */
const SEARCH_PAUSE = 20;
/** Maximum number of clients with such a pause. */
const MAX_PAUSED = 1_000;

/** A body that arrives in pieces, as the budget counts it. */
export class Arrival {
  readonly sender: BodySender;
  /** The memory that it holds. */
  held = 0;
  /** When its client was paused; undefined while the server waits for the client. */
  pausedAt: number | undefined;
  #client: string | undefined;
  #received = 0;
  #receivedAt: number;
  // Two samples of time and received bytes. The rate is measured from the later one that is at least `WINDOW`
  // old.
  #beforeAt: number;
  #before = 0;
  #lastAt: number;
  #last = 0;

  constructor(sender: BodySender, now: number) {
    this.sender = sender;
    this.#receivedAt = now;
    this.#beforeAt = now;
    this.#lastAt = now;
  }

  /** The client whose share it uses. */
  get client(): string {
    this.#client ??= KnownCaller.keyOf(this.sender);
    return this.#client;
  }

  /** Records how many bytes have arrived. */
  advance(received: number, now: number): void {
    this.#received = received;
    this.#receivedAt = now;
    if (now - this.#lastAt < WINDOW) return;
    this.#beforeAt = this.#lastAt;
    this.#before = this.#last;
    this.#lastAt = now;
    this.#last = received;
  }

  /** Excludes a period from the rate. */
  excuse(duration: number): void {
    this.#receivedAt += duration;
    this.#beforeAt += duration;
    this.#lastAt += duration;
  }

  /** Bytes per millisecond, over the last one to two seconds. */
  rate(now: number): number {
    if (now - this.#receivedAt >= WINDOW) return 0;
    const isLast = now - this.#lastAt >= WINDOW;
    const received = this.#received - (isLast ? this.#last : this.#before);
    return received / Math.max(now - (isLast ? this.#lastAt : this.#beforeAt), MIN_AGE);
  }

  /** Whether it is too young for its rate to be meaningful. */
  isYoung(now: number): boolean {
    return now - this.#beforeAt < WINDOW;
  }
}

/** A demand for memory. */
interface Need {
  readonly client: string;
  /** The memory held now, and the memory needed. */
  readonly held: number;
  readonly wanted: number;
  /** Bytes per millisecond. */
  readonly rate: number;
  /** Only slower arrivals are evicted for it. */
  readonly maxRate: number;
  /** Undefined for a complete body. */
  readonly arrival?: Arrival;
}

/**
 * Bounds the memory that bodies hold at the same time. Bodies count as they arrive, not by their announced
 * length, so a body that does not arrive holds little. If the budget is full, others are evicted: first slow
 * arrivals, slowest first, then those of clients that hold more than their share. If that is not enough, the
 * new demand is refused. Complete bodies are never evicted.
 */
export class BodyBudget {
  readonly #max: number;
  readonly #usual: number;
  readonly #now: () => number;
  readonly #arriving = new Set<Arrival>();
  #held = 0;
  /** The part of `#held` that belongs to large bodies. */
  #large = 0;
  /** When the next search may be made, by client. */
  readonly #searchAt = new Map<string, number>();

  constructor({ max, usual = Number.POSITIVE_INFINITY, now = () => performance.now() }: BodyBudgetOptions) {
    this.#max = max;
    this.#usual = usual;
    this.#now = now;
  }

  /** The budget of an instance or its enclosing one; a new one with `options` if there is none. */
  static of(app: FastifyInstance, options: BodyBudgetOptions = { max: LIMITS.maxBodies }): BodyBudget {
    return (app as { [BUDGET]?: BodyBudget })[BUDGET] ?? new BodyBudget(options);
  }

  /** Makes the bodies of an instance and its scopes count towards this budget. */
  attach(app: FastifyInstance): void {
    app.decorate(BUDGET, this as BodyBudget);
  }

  /** The total held. */
  get held(): number {
    return this.#held;
  }

  /** Counts a complete body until `release`; false if it does not fit. */
  take(bytes: number, client: Client): boolean {
    if (!this.#fits(0, bytes) && !this.#evictFor(needOf(bytes, client), this.#now())) return false;
    this.#count(0, bytes);
    return true;
  }

  /** Stops counting a complete body. */
  release(bytes: number): void {
    this.#count(bytes, 0);
  }

  /** Starts counting a body that arrives in pieces, until `close`. It holds nothing yet. */
  open(sender: BodySender): Arrival {
    const arrival = new Arrival(sender, this.#now());
    this.#arriving.add(arrival);
    return arrival;
  }

  /**
   * Records how many bytes have arrived and how much memory is held. Throws HttpProblem if it does not fit.
   */
  grow(arrival: Arrival, held: number, received: number): void {
    const now = this.#now();
    arrival.advance(received, now);
    if (held > arrival.held && !this.#fits(arrival.held, held)) {
      const need = needOfArrival(arrival, held, now);
      if (!this.#evictFor(need, now)) throw need.maxRate <= MIN_RATE ? tooSlow() : busy();
    }
    this.#count(arrival.held, held);
    arrival.held = held;
  }

  /** Marks a body as complete. It counts until `close`. */
  complete(arrival: Arrival): void {
    this.#arriving.delete(arrival);
  }

  /** Stops counting a body that arrived in pieces. */
  close(arrival: Arrival): void {
    this.#arriving.delete(arrival);
    this.#count(arrival.held, 0);
    arrival.held = 0;
  }

  /** Marks a body as paused: the server does not wait for its client, so it is not evicted. */
  pause(arrival: Arrival): void {
    arrival.pausedAt ??= this.#now();
  }

  /** Marks a body as waiting for its client again. */
  resume(arrival: Arrival): void {
    if (arrival.pausedAt === undefined) return;
    arrival.excuse(this.#now() - arrival.pausedAt);
    arrival.pausedAt = undefined;
  }

  #count(before: number, after: number): void {
    this.#held += after - before;
    this.#large += this.#largePart(after) - this.#largePart(before);
  }

  #largePart(held: number): number {
    return held > this.#usual ? held : 0;
  }

  #fits(before: number, after: number): boolean {
    if (this.#held + after - before > this.#max) return false;
    const large = this.#largePart(after);
    return large === 0 || this.#large + large - this.#largePart(before) <= this.#max * LIMITS.largeBodies;
  }

  /** Evicts others until the demand fits; false if that is not enough. */
  #evictFor(need: Need, now: number): boolean {
    if (now < (this.#searchAt.get(need.client) ?? now)) return false;
    const { held, wanted } = need;
    const enough = this.#max - Math.floor(this.#max * SPARE);
    for (const arrival of this.#slow(need, now)) {
      if (this.#fits(held, wanted) && this.#held + wanted - held <= enough) break;
      this.#evict(arrival, need, enough, tooSlow());
    }
    for (const client of this.#overShare(need, now)) {
      let left = client.held;
      for (const arrival of client.arrivals) {
        if (this.#fits(held, wanted) || left <= this.#max * CLIENT_SHARE) break;
        left -= arrival.held;
        this.#evict(arrival, need, this.#max, busy());
      }
    }
    if (this.#fits(held, wanted)) return true;
    if (need.maxRate === Number.POSITIVE_INFINITY) {
      if (this.#searchAt.size >= MAX_PAUSED) this.#searchAt.clear();
      this.#searchAt.set(need.client, now + SEARCH_PAUSE);
    }
    return false;
  }

  #evict(arrival: Arrival, { held, wanted }: Need, enough: number, problem: HttpProblem): void {
    // If only large bodies exceed their share, evicting another one does not help.
    const isForLarge = this.#held + wanted - held <= enough;
    if (isForLarge && this.#largePart(arrival.held) === 0) return;
    // Refusing an earlier one may have ended it.
    if (!this.#arriving.has(arrival)) return;
    this.close(arrival);
    arrival.sender.refuse(problem);
  }

  /** The arrivals that may be evicted for another. */
  #others(arrival: Arrival | undefined): readonly Arrival[] {
    return [...this.#arriving].filter(
      (each) => each !== arrival && each.held > 0 && each.pausedAt === undefined,
    );
  }

  /** The slow arrivals, slowest first. */
  #slow({ rate, maxRate, arrival }: Need, now: number): readonly Arrival[] {
    const most = Math.max(MIN_RATE, rate / MUCH_FASTER);
    return this.#others(arrival)
      .filter((each) => !each.isYoung(now) && each.rate(now) <= most && each.rate(now) < maxRate)
      .sort((a, b) => a.rate(now) - b.rate(now));
  }

  /**
   * The clients with several arrivals that hold more than their share and more than the demanding client,
   * largest first.
   */
  #overShare({ client, wanted, arrival }: Need, now: number) {
    const clients = Map.groupBy(this.#others(arrival), (each) => each.client);
    const own = (clients.get(client) ?? []).reduce((sum, each) => sum + each.held, wanted);
    clients.delete(client);
    return [...clients.values()]
      .filter((arrivals) => arrivals.length > 1)
      .map((arrivals) => ({ arrivals, held: arrivals.reduce((sum, each) => sum + each.held, 0) }))
      .filter((each) => each.held > Math.max(this.#max * CLIENT_SHARE, own))
      .sort((a, b) => b.held - a.held)
      .map((each) => ({ ...each, arrivals: each.arrivals.sort((a, b) => a.rate(now) - b.rate(now)) }));
  }
}

/** The demand of a complete body. */
function needOf(bytes: number, client: Client): Need {
  const rate = bytes / MIN_AGE;
  return {
    client: KnownCaller.keyOf(client),
    held: 0,
    wanted: bytes,
    rate,
    maxRate: Number.POSITIVE_INFINITY,
  };
}

function needOfArrival(arrival: Arrival, wanted: number, now: number): Need {
  const rate = arrival.rate(now);
  const maxRate = arrival.isYoung(now) ? Number.POSITIVE_INFINITY : rate;
  return { client: arrival.client, held: arrival.held, wanted, rate, maxRate, arrival };
}

/** The refusal of a body that does not fit. */
export function busy(headers: Readonly<Record<string, string>> = {}): HttpProblem {
  return new HttpProblem(503, 'BUSY', reasonPhrase(503), { headers: { ...headers, 'retry-after': '1' } });
}

/** The refusal of a body that is evicted because it arrives too slowly. */
function tooSlow(): HttpProblem {
  return new HttpProblem(408, 'TOO_SLOW', reasonPhrase(408));
}
