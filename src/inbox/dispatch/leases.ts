import type { ClaimedJob } from '../delivery.ts';
import type { Inbox } from '../inbox.ts';
import type { Attempt } from './attempt.ts';
import type { HeldAttempts } from './held-attempts.ts';
import { PeriodicTask } from './periodic-task.ts';

interface LeasesOptions {
  readonly inbox: Pick<Inbox, 'renew'>;
  readonly owner: string;
  /** Length of a lease in milliseconds. */
  readonly lease: number;
  readonly events: {
    leaseLost(job: ClaimedJob): void;
    storeFailed(error: unknown): void;
  };
}

/**
 * Renews the leases of running attempts before they end. Aborts an attempt once its lease is lost, or was not
 * renewed for so long that another process may have the job. After the process itself was suspended, it first
 * tries a renewal.
 */
export class Leases {
  readonly #options: LeasesOptions;
  /** The attempts of each worker. */
  readonly #held: HeldAttempts[] = [];
  readonly #renewals: PeriodicTask;
  #renewing: Promise<void> | undefined;
  #expiry: NodeJS.Timeout | undefined;

  constructor(options: LeasesOptions) {
    this.#options = options;
    this.#renewals = new PeriodicTask(options.lease / 3, () => this.#renew());
  }

  start(): void {
    this.#renewals.start();
  }

  stop(): void {
    clearTimeout(this.#expiry);
    // Not awaited: a renewal can outlast the deadline while the database hangs.
    void this.#renewals.stop();
  }

  /** Includes all attempts that a worker will hold; the worker calls `watch` after adding some. */
  include(held: HeldAttempts): void {
    this.#held.push(held);
  }

  /** Renews overdue leases, for example after the event loop was blocked; claims wait for it. */
  beforeClaim(): Promise<void> | undefined {
    const due = performance.now() + this.#options.lease / 2;
    for (const { leaseUntil } of this.#attempts()) if (leaseUntil < due) return this.#renew();
    return undefined;
  }

  #renew(): Promise<void> {
    this.#renewing ??= this.#renewAll().finally(() => {
      this.#renewing = undefined;
    });
    return this.#renewing;
  }

  async #renewAll(): Promise<void> {
    const { inbox, owner, lease, events } = this.#options;
    const attempts = [...this.#attempts()];
    if (attempts.length === 0) return;
    // The store starts the lease when it gets the renewal, which is later.
    const leaseUntil = performance.now() + lease;
    try {
      const jobs = attempts.map(({ job }) => job.job);
      const { renewed, lost } = await inbox.renew(owner, jobs, lease);
      const [held, gone] = [new Set(renewed), new Set(lost)];
      for (const attempt of attempts) {
        if (held.has(attempt.job.job)) attempt.leaseUntil = leaseUntil;
        // Attempts that ended meanwhile are no longer leased either.
        else if (gone.has(attempt.job.job) && !attempt.settling) this.#lose(attempt);
      }
    } catch (error) {
      events.storeFailed(error);
    }
  }

  *#attempts(): Iterable<Attempt> {
    for (const held of this.#held) yield* held;
  }

  /** Schedules a check at the end of the first lease. */
  watch(): void {
    if (this.#expiry !== undefined) return;
    let next = Number.POSITIVE_INFINITY;
    for (const { leaseUntil, leaseLost, settling } of this.#attempts()) {
      if (!leaseLost && !settling) next = Math.min(next, leaseUntil);
    }
    if (next === Number.POSITIVE_INFINITY) return;
    const wait = Math.max(0, Math.ceil(next - performance.now()));
    this.#expiry = setTimeout(() => this.#expire(next), wait);
  }

  /** `due` is when the first lease was to end, by `performance.now()`. */
  #expire(due: number): void {
    const { lease } = this.#options;
    if (performance.now() - due < lease / 10) {
      this.#loseEnded();
      return;
    }
    this.#expiry = setTimeout(() => this.#loseEnded(), lease / 3);
    void this.#renew().then(() => this.#loseEnded());
  }

  #loseEnded(): void {
    clearTimeout(this.#expiry);
    this.#expiry = undefined;
    const now = performance.now();
    for (const attempt of this.#attempts()) {
      if (attempt.leaseUntil <= now && !attempt.settling) this.#lose(attempt);
    }
    this.watch();
  }

  #lose(attempt: Attempt): void {
    if (attempt.loseLease()) this.#options.events.leaseLost(attempt.job);
  }
}

interface HeartbeatOptions {
  readonly inbox: Pick<Inbox, 'recordHeartbeat' | 'expireOrphans'>;
  /** The targets that this process runs. */
  readonly targets: readonly string[];
  /** Jobs of a target expire after this long without a heartbeat, in milliseconds; 0: never. */
  readonly grace: number;
  /** Interval of the heartbeats in milliseconds. Default: a third of `grace`, at most a minute. */
  readonly interval?: number;
  /** Called with the number of expired jobs per target. */
  onExpired(jobs: ReadonlyMap<string, number>): void;
  onError(error: unknown): void;
}

/** Maximum number of jobs to expire per write, so that other writes do not wait long. */
const BATCH = 500;
const MAX_INTERVAL = 60_000;

/**
 * Records which targets this process runs, and expires the jobs of targets that no process runs: jobs of a
 * handler that was removed from the configuration would otherwise stay open for ever. Expired jobs are dead
 * and can be replayed. A process expires jobs only after an unbroken series of its own heartbeats for all of
 * `grace`. Otherwise other processes would look gone after a start or a database outage.
 */
export class Heartbeat {
  readonly #options: HeartbeatOptions;
  readonly #interval: number;
  /** Calls `beat` at the interval. */
  readonly task: PeriodicTask;
  /** The unbroken series of this process's heartbeats: the first and the last, in ms since the epoch. */
  #series: { readonly first: number; readonly last: number } | undefined;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
    const { grace, interval } = options;
    this.#interval = interval ?? (grace === 0 ? MAX_INTERVAL : Math.min(MAX_INTERVAL, Math.ceil(grace / 3)));
    this.task = new PeriodicTask(this.#interval, () => this.beat(Date.now()));
  }

  /** Records one heartbeat and expires orphaned jobs; `now` is in milliseconds since the epoch. */
  async beat(now: number): Promise<void> {
    const { inbox, targets, grace, onExpired, onError } = this.#options;
    const previous = this.#series;
    this.#series = undefined;
    try {
      await inbox.recordHeartbeat(targets, now);
      const unbroken =
        previous !== undefined && now >= previous.last && now - previous.last <= 2 * this.#interval;
      const first = unbroken ? previous.first : now;
      this.#series = { first, last: now };
      if (grace === 0 || now - first < grace) return;
      const jobs = await this.#expireOrphans(now);
      if (jobs.size > 0) onExpired(jobs);
    } catch (error) {
      onError(error);
    }
  }

  async #expireOrphans(now: number): Promise<ReadonlyMap<string, number>> {
    const { inbox, grace } = this.#options;
    const error = `no process has run this handler or forward address for ${grace / 1_000} s; restore it and replay`;
    const jobs = new Map<string, number>();
    for (let full = true; full && !this.task.stopped; ) {
      const expired = await inbox.expireOrphans(now - grace, BATCH, error, now);
      for (const target of expired) jobs.set(target, (jobs.get(target) ?? 0) + 1);
      full = expired.length === BATCH;
    }
    return jobs;
  }
}
