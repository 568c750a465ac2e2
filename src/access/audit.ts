import type { MaybePromise } from '../core/maybe-promise.ts';

interface AuditLogOptions {
  readonly store: Pick<AuditStore, 'append' | 'prune'>;
  /** How long events are kept, in milliseconds. */
  readonly maxAge: number;
  onError(error: unknown): void;
  readonly now?: () => number;
}

/** Time between two writes, in milliseconds. */
const INTERVAL = 500;
/** Time between two removals, in milliseconds. */
const PRUNE_INTERVAL = 60_000;
/** Maximum number of events that wait for the database. */
const MAX_WAITING = 1_000;
/** Refusals that are recorded one by one at once, and then in a second. */
const BURST = 100;
const PER_SECOND = 0.5;
/** Maximum number of actions, and of refusals, that are kept: with texts of some hundred bytes each some 50 MB. */
const MAX_EVENTS = 50_000;

/**
 * Records events in batches, off the path of requests. Refusals beyond a rate become one event with their number, so that
 * clients can fill neither the database nor the log's own queue.
 */
export class AuditLog implements Audit, AsyncDisposable {
  readonly #options: AuditLogOptions;
  readonly #now: () => number;
  #waiting: AuditEvent[] = [];
  readonly #surplus = new SuppressedAudit();
  #tokens = BURST;
  #refilledAt: number;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  #pruning: NodeJS.Timeout | undefined;

  constructor(options: AuditLogOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    this.#refilledAt = performance.now();
  }

  /** Starts to remove old events. */
  start(): void {
    this.#pruning = setInterval(() => this.#prune(), PRUNE_INTERVAL).unref();
    this.#prune();
  }

  record(entry: AuditEntry): void {
    const event = { ...boundedEntry(entry), at: this.#now() };
    if (this.#waiting.length < MAX_WAITING && (entry.isAction || this.#takeToken()))
      this.#waiting.push(event);
    else this.#surplus.add(event);
    this.#timer ??= setTimeout(() => this.#flush(), INTERVAL).unref();
  }

  /** Writes what waits, and resolves once that is stored or lost. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#pruning);
    clearTimeout(this.#timer);
    this.#flush(Number.POSITIVE_INFINITY);
    await this.#writing;
  }

  #takeToken(): boolean {
    const now = performance.now();
    this.#tokens = Math.min(BURST, this.#tokens + ((now - this.#refilledAt) / 1_000) * PER_SECOND);
    this.#refilledAt = now;
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }

  #flush(now = performance.now()): void {
    this.#timer = undefined;
    const events = [...this.#waiting, ...this.#surplus.take(now)];
    this.#waiting = [];
    // What is gathered still waits for the end of its time.
    if (this.#surplus.size > 0) this.#timer = setTimeout(() => this.#flush(), INTERVAL).unref();
    if (events.length === 0) return;
    const { store, onError } = this.#options;
    this.#writing = this.#writing.then(() => store.append(events)).catch(onError);
  }

  #prune(): void {
    const { store, maxAge, onError } = this.#options;
    const step = async (): Promise<void> => {
      while ((await store.prune(this.#now() - maxAge, MAX_EVENTS)) > 0);
    };
    void step().catch(onError);
  }
}

/** What is recorded beside who and what; texts of clients are cut. */
export type AuditData = Readonly<Record<string, string | number | undefined>>;

/** Something that has happened. */
export interface AuditEntry {
  /** Who did it: the name of a user or token; `anonymous` without one. */
  readonly principal: string;
  /** In Actuator's style: `AUTHENTICATION_FAILURE`. */
  readonly type: string;
  readonly data: AuditData;
  /** Whether somebody changed the service or saw its inside; the others are refusals, of which clients choose the number. */
  readonly isAction: boolean;
}

/** Takes note of what has happened, off the path of the request. Never throws, never waits. */
export interface Audit {
  record(entry: AuditEntry): void;
}

/** An entry with the time when it happened, in milliseconds since 1970. */
export interface AuditEvent extends AuditEntry {
  readonly at: number;
}

/** Which events are asked for. */
interface AuditQuery {
  readonly principal?: string | undefined;
  readonly type?: string | undefined;
  /** In milliseconds since 1970; events of that moment are left out. */
  readonly after?: number | undefined;
  readonly limit: number;
}

/** Keeps events. Fails with StoreUnavailableError. */
export interface AuditStore {
  append(events: readonly AuditEvent[]): Promise<void>;
  /** The latest events, oldest first. */
  find(query: AuditQuery): MaybePromise<readonly AuditEvent[]>;
  /** Removes what happened before `before`, and the oldest beyond `max` actions and `max` refusals; resolves to how many. */
  prune(before: number, max: number): Promise<number>;
}

/** Who did something without saying who. */
export const ANONYMOUS = 'anonymous';

/** Maximum length of a text. */
const MAX_TEXT = 200;
const MAX_FIELDS = 12;

/** An entry whose texts, which clients may have chosen, are short and can be stored and shown. */
export function boundedEntry({ principal, type, data, isAction }: AuditEntry): AuditEntry {
  const fields = Object.entries(data)
    .filter(([, value]) => value !== undefined)
    .slice(0, MAX_FIELDS)
    .map(([name, value]) => [name, typeof value === 'string' ? clean(value) : value]);
  return {
    principal: clean(principal),
    type: clean(type),
    data: Object.fromEntries(fields) as AuditData,
    isAction,
  };
}

function clean(text: string): string {
  return text
    .slice(0, MAX_TEXT)
    .toWellFormed()
    .replace(/\p{Cc}/gu, '\ufffd');
}

/** How long events are gathered before their number is written, in milliseconds. */
const PERIOD = 10_000;
/** Kinds that are counted apart; all others count together. */
const MAX_KINDS = 50;

interface Gathered {
  readonly first: AuditEvent;
  count: number;
}

/** Events beyond the rate, by their kind: what happened at which door, not who did it. */
class SuppressedAudit {
  readonly #kinds = new Map<string, Gathered>();
  #until: number | undefined;

  get size(): number {
    return this.#kinds.size;
  }

  add(event: AuditEvent): void {
    this.#until ??= performance.now() + PERIOD;
    const { type, isAction, data } = event;
    const own = `${type} ${isAction} ${data.door} ${data.code}`;
    const kind = this.#kinds.has(own) || this.#kinds.size < MAX_KINDS ? own : '';
    const gathered = this.#kinds.get(kind);
    if (gathered === undefined) this.#kinds.set(kind, { first: event, count: 1 });
    else gathered.count++;
  }

  /** One event for each kind once their time is over, before that none; all of them with an infinite time. */
  take(now: number): readonly AuditEvent[] {
    if (this.#until === undefined || now < this.#until) return [];
    const events = [...this.#kinds.values()].map(({ first, count }) => {
      const { at, type, isAction, data } = first;
      const { door, status, code } = data;
      return { at, type, isAction, principal: '*', data: { door, status, code, count } };
    });
    this.#kinds.clear();
    this.#until = undefined;
    return events;
  }
}
