import { MAX_DEATHS } from '../deaths.ts';
import type { ClaimedJob } from '../delivery.ts';
import type { Inbox, Outcome } from '../inbox.ts';
import { Attempt, type Ended, RELEASED } from './attempt.ts';
import type { ClaimedBytes } from './claimed-bytes.ts';
import type { Leases } from './leases.ts';
import type { Target } from './target.ts';

/** Receives what happens to jobs. */
export interface WorkerEvents {
  /** An attempt ended and its outcome was recorded. */
  settled(job: ClaimedJob, outcome: Outcome['kind'], error?: unknown): void;
  /** The lease ended, or may have ended, before the attempt did, so another process may run the job too. */
  leaseLost(job: ClaimedJob): void;
  /** A target still runs long after its attempt was told to end; other attempts may run beside it from now on. */
  overdue(job: ClaimedJob): void;
  /** The inbox was unavailable; the dispatcher retries. */
  storeFailed(error: unknown): void;
}

export interface WorkerOptions {
  readonly inbox: Inbox;
  readonly target: Target;
  readonly owner: string;
  /** Length of a lease in milliseconds. */
  readonly lease: number;
  readonly leases: Leases;
  /** Shared by the workers of a process. */
  readonly bytes: ClaimedBytes;
  readonly events: WorkerEvents;
  /** Called when the suspect that this worker ran has ended. */
  onSuspectEnded(): void;
}

/** When a claim leaves less than this of its share, in bytes, the next body may not have fit. */
const LARGE_BODY = 25 * 1024 * 1024;

/**
 * Claims and runs the jobs of one target. States: idle -> claiming (on wake) -> idle. A wake that comes while the worker
 * claims, or has no free slot, takes effect afterwards. After `stop` it claims nothing.
 */
export class Worker {
  readonly #options: WorkerOptions;
  readonly #running = new Map<Attempt, Promise<void>>();
  #claiming: Promise<void> | undefined;
  /** Whether there may be a job to claim. */
  #pending = false;
  /** The suspect that this worker runs, or will claim once there is a free slot. */
  #suspect: 'none' | 'wanted' | Attempt = 'none';
  #stopped = false;
  #deadline: AbortSignal | undefined;

  constructor(options: WorkerOptions) {
    this.#options = options;
  }

  /** The number of running attempts. */
  get running(): number {
    return this.#running.size;
  }

  get hasSuspect(): boolean {
    return this.#suspect !== 'none';
  }

  /** Claims one suspect as soon as there is a free slot. */
  wakeForSuspect(): void {
    this.#suspect = 'wanted';
    this.wake();
  }

  /** Claims jobs as soon as there is a free slot. */
  wake(): void {
    this.#pending = true;
    if (this.#stopped || this.#claiming !== undefined || this.#freeSlots === 0) return;
    this.#claiming = this.#claim().finally(() => {
      this.#claiming = undefined;
      if (this.#pending) this.wake();
    });
  }

  /** Stops claiming and waits for running attempts; `deadline` aborts them and releases their jobs. */
  async stop(deadline: AbortSignal): Promise<void> {
    this.#stopped = true;
    this.#deadline = deadline;
    const release = () => {
      for (const attempt of this.#running.keys()) attempt.release(deadline.reason);
    };
    deadline.addEventListener('abort', release, { once: true });
    if (deadline.aborted) release();
    await this.#claiming;
    await Promise.all(this.#running.values());
    deadline.removeEventListener('abort', release);
  }

  /**
   * Ends all attempts because the process ends unexpectedly. `culprit` has failed with `error`, and all others are
   * released; when it is not known, each of them counts a death.
   */
  async crash(error: unknown, culprit: Attempt | undefined): Promise<void> {
    this.#stopped = true;
    this.#deadline = AbortSignal.abort(error);
    for (const attempt of this.#running.keys()) {
      if (attempt === culprit) attempt.crash(error);
      else if (culprit === undefined) attempt.crash();
      else attempt.release(error);
    }
    await this.#claiming;
    await Promise.all(this.#running.values());
  }

  get #freeSlots(): number {
    return this.#options.target.concurrency - this.#running.size;
  }

  async #claim(): Promise<void> {
    const { inbox, target, owner, lease, leases, bytes, events } = this.#options;
    while (this.#pending && this.#freeSlots > 0 && !this.#stopped) {
      // A target that runs nothing may always claim one.
      if (bytes.isFull && this.#running.size > 0) {
        this.#pending = false;
        bytes.onRoom(this.#wake);
        return;
      }
      const slots = this.#freeSlots;
      this.#pending = false;
      const share = bytes.share();
      let taken = 0;
      try {
        const renewal = leases.beforeClaim();
        if (renewal !== undefined) await renewal;
        if (this.#stopped) return;
        const suspects = this.#suspect === 'wanted';
        const limit = suspects ? 1 : slots;
        const held = Array.from(this.#running.keys(), ({ job }) => job.job);
        const leaseUntil = performance.now() + lease;
        const jobs = await inbox.claim(target.name, limit, owner, lease, {
          held,
          suspects,
          maxBytes: share.bytes,
        });
        taken = jobs.reduce((sum, job) => sum + sizeOf(job), 0);
        const mayBeCut = jobs.length > 0 && share.bytes - taken < LARGE_BODY;
        // A suspect comes before the others, and they after it.
        if (suspects || jobs.length === slots || mayBeCut) this.#pending = true;
        const attempts = jobs.map((job) => new Attempt(job, target, leaseUntil, () => events.overdue(job)));
        if (suspects) this.#suspect = attempts[0] ?? 'none';
        for (const attempt of attempts) this.#start(attempt);
      } catch (error) {
        // The next poll retries.
        if (this.#suspect === 'wanted') this.#suspect = 'none';
        events.storeFailed(error);
      } finally {
        share.settle(taken);
      }
    }
  }

  readonly #wake = (): void => this.wake();

  #start(attempt: Attempt): void {
    const { target, leases, bytes, events, onSuspectEnded } = this.#options;
    leases.add(attempt);
    const running = this.#run(attempt)
      .catch(events.storeFailed)
      .finally(() => {
        leases.delete(attempt);
        this.#running.delete(attempt);
        bytes.release(sizeOf(attempt.job));
        if (this.#suspect === attempt) {
          this.#suspect = 'none';
          onSuspectEnded();
        }
        // The next job with the same order key may be claimable now.
        if (this.#pending || target.ordered === true) this.wake();
      });
    this.#running.set(attempt, running);
  }

  async #run(attempt: Attempt): Promise<void> {
    const { inbox, owner, events } = this.#options;
    const { job } = attempt;
    const { outcome, error } = await this.#end(attempt);
    attempt.settling = true;
    const recorded = await inbox.settle(job, owner, outcome);
    if (recorded) events.settled(job, outcome.kind, error);
    else if (!attempt.leaseLost) events.leaseLost(job);
  }

  #end(attempt: Attempt): Ended | Promise<Ended> {
    const { maxAttempts } = this.#options.target;
    const { attempt: number, deaths } = attempt.job;
    if (deaths >= MAX_DEATHS) {
      const error = `the process ended, or stood still, during each of ${deaths} attempts`;
      return { outcome: { kind: 'dead', error } };
    }
    // Its target allows fewer attempts than before.
    if (number > maxAttempts) return { outcome: { kind: 'dead', error: `had ${number - 1} attempts` } };
    // The answer to the claim came so late that the lease may have ended.
    if (performance.now() >= attempt.leaseUntil || this.#deadline?.aborted) return RELEASED;
    return attempt.run();
  }
}

function sizeOf({ delivery: { body } }: ClaimedJob): number {
  return body.byteLength;
}
