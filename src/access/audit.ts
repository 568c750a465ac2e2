import type { IncomingHttpHeaders } from 'node:http';
import type { MaybePromise } from '../core/scheduler.ts';

interface AuditLogOptions {
  readonly store: Pick<AuditStore, 'append' | 'prune'>;
  /** How long events are kept, in milliseconds. */
  readonly maxAge: number;
  onError(error: unknown): void;
  readonly now?: () => number;
}

/** Time between two writes, in milliseconds. */
const INTERVAL = 500;
/** Time between two removals of old events, in milliseconds. */
const PRUNE_INTERVAL = 60_000;
/** Maximum number of events waiting to be written. */
const MAX_WAITING = 1_000;
/** Token bucket for refusals recorded individually: its size, and the tokens added per second. */
const BURST = 100;
const PER_SECOND = 0.5;
/** Maximum number of actions, and of refusals, that are kept: about 50 MB with a few hundred bytes each. */
const MAX_EVENTS = 50_000;

/**
 * Records events in batches, off the path of requests. Refusals beyond a rate are combined into one event
 * with a count, so clients can fill neither the database nor the queue.
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

  /** Writes the waiting events; resolves once they are stored or the write has failed. */
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
    // The suppressed events stay until their period ends.
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

/** Details of an event. Long texts from clients are truncated. */
export type AuditData = Readonly<Record<string, string | number | undefined>>;

interface AuditEntry {
  /** The name of the user or token; `anonymous` if there is none. */
  readonly principal: string;
  /** The type in Actuator's style, for example `AUTHENTICATION_FAILURE`. */
  readonly type: string;
  readonly data: AuditData;
  /** Whether the caller changed the service or read its internals; clients control all other events. */
  readonly isAction: boolean;
}

/** Records events off the path of the request. Never throws and never waits. */
export interface Audit {
  record(entry: AuditEntry): void;
}

/** An entry with the time when it happened, in milliseconds since 1970. */
export interface AuditEvent extends AuditEntry {
  readonly at: number;
}

interface AuditQuery {
  readonly principal?: string | undefined;
  readonly type?: string | undefined;
  /** Only events after this time, exclusive, in milliseconds since 1970. */
  readonly after?: number | undefined;
  readonly limit: number;
}

/** Stores events. Fails with StoreUnavailableError. */
export interface AuditStore {
  append(events: readonly AuditEvent[]): Promise<void>;
  /** The latest events, oldest first. */
  find(query: AuditQuery): MaybePromise<readonly AuditEvent[]>;
  /** Removes events before `before`, and those beyond `max` actions and refusals; resolves to how many. */
  prune(before: number, max: number): Promise<number>;
}

/** The principal of a caller without credentials. */
export const ANONYMOUS = 'anonymous';

/** Maximum length of a text, in UTF-16 units. */
const MAX_TEXT = 200;
const MAX_FIELDS = 12;

/** Truncates an entry's texts, which clients may have chosen, and replaces their control characters. */
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

/** How long suppressed events are counted before the counts are written, in milliseconds. */
const PERIOD = 10_000;
/** Maximum number of kinds counted separately; all further kinds share one count. */
const MAX_KINDS = 50;

interface Gathered {
  readonly first: AuditEvent;
  count: number;
}

/** Counts the events beyond the rate by type, door and code, regardless of the principal. */
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

  /** One event for each kind once the period is over, none before; an infinite `now` takes them at once. */
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

/** A request that was refused because of its credentials or its rate. */
interface RefusedRequest {
  readonly id: string;
  /** The client's address; empty on a Unix socket. */
  readonly client: string;
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly headers: Readonly<IncomingHttpHeaders>;
  readonly status: number;
  /** The name of the authenticated token or user; undefined if the caller is unknown. */
  readonly caller: string | undefined;
  /** The code of the refusal. */
  readonly code: string;
}

/** Called for each such request. */
export type OnRefused = (refused: RefusedRequest) => void;

/** Whether a status refuses the caller: 401, 403 or 429. */
export function isAudited(status: number): boolean {
  return status === 401 || status === 403 || status === 429;
}
