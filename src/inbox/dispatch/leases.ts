import type { ClaimedJob } from '../delivery.ts';
import type { Inbox } from '../inbox.ts';
import type { Attempt } from './attempt.ts';
import type { HeldAttempts } from './held-attempts.ts';
import { PeriodicTask } from './periodic-task.ts';

export interface LeasesOptions {
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
 * The leases of the running attempts. It renews them before they end. The moment one is known to be lost, or was not
 * renewed for so long that somebody else may have the job, it aborts the attempt. When the process itself stood still,
 * nobody was asked for a renewal, so it asks first.
 */
export class Leases {
  readonly #options: LeasesOptions;
  /** Those of each worker. */
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
    // Not awaited: while the database hangs a renewal outlasts the deadline.
    void this.#renewals.stop();
  }

  /** Takes care of the leases of all attempts that a worker will hold; it calls `watch` when it has added some. */
  include(held: HeldAttempts): void {
    this.#held.push(held);
  }

  /** Renews leases that should have been renewed already, as after a block of the event loop: claims come after that. */
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
    // The lease begins when the store gets the renewal, which is later.
    const leaseUntil = performance.now() + lease;
    try {
      const jobs = attempts.map(({ job }) => job.job);
      const { renewed, lost } = await inbox.renew(owner, jobs, lease);
      const [held, gone] = [new Set(renewed), new Set(lost)];
      for (const attempt of attempts) {
        if (held.has(attempt.job.job)) attempt.leaseUntil = leaseUntil;
        // What has ended meanwhile is no longer leased either.
        else if (gone.has(attempt.job.job) && !attempt.settling) this.#lose(attempt);
      }
    } catch (error) {
      events.storeFailed(error);
    }
  }

  *#attempts(): Iterable<Attempt> {
    for (const held of this.#held) yield* held;
  }

  /** Sees to it that each lease is looked at when it ends. */
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
