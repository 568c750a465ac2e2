import type { FastifyInstance } from 'fastify';
import { clientKey } from '../caller.ts';
import type { RequestContext } from '../endpoint.ts';
import { HttpProblem, reasonPhrase } from '../problem.ts';

/** Whose share of a budget something takes. */
type Client = Pick<RequestContext, 'caller' | 'client'>;

/** Who sends something that arrives in pieces. */
export interface BodySender extends Client {
  /** Ends it with a refusal, because it has to make room. What it held counts no more. */
  refuse(problem: HttpProblem): void;
}

/** How a budget is set up. */
export interface BodyBudgetOptions {
  /** What everything together may hold: bytes, or whatever else `grow` and `take` are called with. */
  readonly max: number;
  /** Anything that holds more is large, and everything large together holds at most half of `max`; default no limit. */
  readonly usual?: number;
  /** A monotonic clock, in milliseconds; default the process's. */
  readonly now?: () => number;
}

/** The bytes that the bodies of a door may hold, where nothing else is configured. */
export const DEFAULT_MAX_BODIES = 64 * 1024 * 1024;
/** The part of a budget for everything large, so that a few large bodies leave room for the others. */
export const LARGE_SHARE = 0.5;
/** The part of a budget that one client keeps while others need room. */
const CLIENT_SHARE = 0.25;
/** The part of a budget that slow senders make free at once, so that not every body has to search for them. */
const SPARE = 1 / 64;
/** The slowest that a body may arrive while others need room, in bytes per millisecond: 1 MiB in 32 seconds. */
const MIN_RATE = 32.768;
/** A body also makes room for one that arrives this much faster. */
const MUCH_FASTER = 4;
/** The time that a rate is measured over, at least; what is younger is not slow yet. In milliseconds. */
const WINDOW = 1_000;
/** The least age that a rate is calculated with, in milliseconds. */
const MIN_AGE = 100;
/** How long nothing is searched for a client for whom a search has found too little, in milliseconds. */
const SEARCH_PAUSE = 20;
/** Clients of whom that is known at the same time. */
const MAX_PAUSED = 1_000;

/** Something that arrives in pieces, as the budget counts it. */
export class Arrival {
  readonly sender: BodySender;
  /** What it holds. */
  held = 0;
  /** Since when its client is not waited for; undefined while it is. */
  pausedAt: number | undefined;
  #client: string | undefined;
  #received = 0;
  #receivedAt: number;
  // Two moments with the bytes that had come until then. The rate is measured from the later one that is old enough.
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

  /** Whose share it takes. */
  get client(): string {
    this.#client ??= clientKey(this.sender);
    return this.#client;
  }

  /** Notes how many bytes have come. */
  advance(received: number, now: number): void {
    this.#received = received;
    this.#receivedAt = now;
    if (now - this.#lastAt < WINDOW) return;
    this.#beforeAt = this.#lastAt;
    this.#before = this.#last;
    this.#lastAt = now;
    this.#last = received;
  }

  /** Leaves a time out of the rate. */
  excuse(duration: number): void {
    this.#receivedAt += duration;
    this.#beforeAt += duration;
    this.#lastAt += duration;
  }

  /** Bytes per millisecond, over the last one or two seconds. */
  rate(now: number): number {
    if (now - this.#receivedAt >= WINDOW) return 0;
    const isLast = now - this.#lastAt >= WINDOW;
    const received = this.#received - (isLast ? this.#last : this.#before);
    return received / Math.max(now - (isLast ? this.#lastAt : this.#beforeAt), MIN_AGE);
  }

  /** Whether its rate says little yet. */
  isYoung(now: number): boolean {
    return now - this.#beforeAt < WINDOW;
  }
}

/** What needs room. */
interface Need {
  readonly client: string;
  /** What it holds, and what it is to hold. */
  readonly held: number;
  readonly wanted: number;
  /** Bytes per millisecond. */
  readonly rate: number;
  /** Nothing that is at least as fast makes room for it. */
  readonly maxRate: number;
  /** Undefined for what is complete. */
  readonly arrival?: Arrival;
}

/**
 * Bounds what bodies hold in memory at the same time. They are counted as they grow, not as they announce it, so a body
 * that does not come holds little. Where there is no room, others make it: those that arrive slowly, slowest first, then
 * those of a client that holds more than its share. Otherwise the body that needs the room is refused. A body that is
 * complete makes room for nobody.
 */
export class BodyBudget {
  readonly #max: number;
  readonly #usual: number;
  readonly #now: () => number;
  readonly #arriving = new Set<Arrival>();
  #held = 0;
  /** The part of it that is large. */
  #large = 0;
  /** When something may be searched for a client again. */
  readonly #searchAt = new Map<string, number>();

  constructor({ max, usual = Number.POSITIVE_INFINITY, now = () => performance.now() }: BodyBudgetOptions) {
    this.#max = max;
    this.#usual = usual;
    this.#now = now;
  }

  /** What everything holds. */
  get held(): number {
    return this.#held;
  }

  /** Counts a body that is complete, until `release`; false when there is no room. */
  take(bytes: number, client: Client): boolean {
    if (!this.#fits(0, bytes) && !this.#makeRoom(needOf(bytes, client), this.#now())) return false;
    this.#count(0, bytes);
    return true;
  }

  /** Counts a body no more. */
  release(bytes: number): void {
    this.#count(bytes, 0);
  }

  /** Begins to count something that arrives in pieces, until `close`. It holds nothing yet. */
  open(sender: BodySender): Arrival {
    const arrival = new Arrival(sender, this.#now());
    this.#arriving.add(arrival);
    return arrival;
  }

  /** Notes how many bytes have come, and what is held of them. Throws HttpProblem when there is no room. */
  grow(arrival: Arrival, held: number, received: number): void {
    const now = this.#now();
    arrival.advance(received, now);
    if (held > arrival.held && !this.#fits(arrival.held, held)) {
      const need = needOfArrival(arrival, held, now);
      if (!this.#makeRoom(need, now)) throw need.maxRate <= MIN_RATE ? tooSlow() : busy();
    }
    this.#count(arrival.held, held);
    arrival.held = held;
  }

  /** Notes that something is complete. It is counted until `close`. */
  complete(arrival: Arrival): void {
    this.#arriving.delete(arrival);
  }

  /** Nothing of it is held any more. */
  close(arrival: Arrival): void {
    this.#arriving.delete(arrival);
    this.#count(arrival.held, 0);
    arrival.held = 0;
  }

  /** From now on its client is not waited for, so it makes room for nobody. */
  pause(arrival: Arrival): void {
    arrival.pausedAt ??= this.#now();
  }

  /** Its client is waited for again. */
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
    return large === 0 || this.#large + large - this.#largePart(before) <= this.#max * LARGE_SHARE;
  }

  /** Refuses others until something fits; false where they cannot make room enough. */
  #makeRoom(need: Need, now: number): boolean {
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
    // Where only large bodies are too many, another one would make room for nothing.
    const isForLarge = this.#held + wanted - held <= enough;
    if (isForLarge && this.#largePart(arrival.held) === 0) return;
    // The refusal of another one may have ended it.
    if (!this.#arriving.has(arrival)) return;
    this.close(arrival);
    arrival.sender.refuse(problem);
  }

  /** What may have to make room for something. */
  #others(arrival: Arrival | undefined): readonly Arrival[] {
    return [...this.#arriving].filter(
      (each) => each !== arrival && each.held > 0 && each.pausedAt === undefined,
    );
  }

  /** What arrives slowly, the slowest first. */
  #slow({ rate, maxRate, arrival }: Need, now: number): readonly Arrival[] {
    const most = Math.max(MIN_RATE, rate / MUCH_FASTER);
    return this.#others(arrival)
      .filter((each) => !each.isYoung(now) && each.rate(now) <= most && each.rate(now) < maxRate)
      .sort((a, b) => a.rate(now) - b.rate(now));
  }

  /** The clients that send several bodies and hold more than their share and than the one who needs room, most first. */
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

/** What a complete body needs. */
function needOf(bytes: number, client: Client): Need {
  const rate = bytes / MIN_AGE;
  return { client: clientKey(client), held: 0, wanted: bytes, rate, maxRate: Number.POSITIVE_INFINITY };
}

function needOfArrival(arrival: Arrival, wanted: number, now: number): Need {
  const rate = arrival.rate(now);
  const maxRate = arrival.isYoung(now) ? Number.POSITIVE_INFINITY : rate;
  return { client: arrival.client, held: arrival.held, wanted, rate, maxRate, arrival };
}

const BUDGET = Symbol('portico.bodyBudget');

/** Has the bodies of an instance, and of those inside it, count into a budget. */
export function setBodyBudget(app: FastifyInstance, budget: BodyBudget): void {
  app.decorate(BUDGET, budget);
}

/** The budget of an instance, or of the one around it; a new one with these options where they have none. */
export function bodyBudgetOf(
  app: FastifyInstance,
  options: BodyBudgetOptions = { max: DEFAULT_MAX_BODIES },
): BodyBudget {
  return (app as { [BUDGET]?: BodyBudget })[BUDGET] ?? new BodyBudget(options);
}

/** The refusal of what finds no room. */
export function busy(headers: Readonly<Record<string, string>> = {}): HttpProblem {
  return new HttpProblem(503, 'BUSY', reasonPhrase(503), { headers: { ...headers, 'retry-after': '1' } });
}

/** The refusal of what has to make room because it arrives too slowly. */
function tooSlow(): HttpProblem {
  return new HttpProblem(408, 'TOO_SLOW', reasonPhrase(408));
}
