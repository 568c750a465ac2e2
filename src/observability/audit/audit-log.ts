import type { Audit, AuditEntry, AuditEvent, AuditStore } from './audit.ts';
import { boundedEntry } from './bounded-entry.ts';
import { Surplus } from './surplus.ts';

export interface AuditLogOptions {
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
export const MAX_EVENTS = 50_000;

/**
 * Records events in batches, off the path of requests. Refusals beyond a rate become one event with their number, so that
 * clients can fill neither the database nor the log's own queue.
 */
export class AuditLog implements Audit, AsyncDisposable {
  readonly #options: AuditLogOptions;
  readonly #now: () => number;
  #waiting: AuditEvent[] = [];
  readonly #surplus = new Surplus();
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
