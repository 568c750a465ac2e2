import { MAX_DEATHS } from '../deaths.ts';
import type { ClaimedJob } from '../delivery.ts';
import type { Inbox, Outcome } from '../inbox.ts';
import { Attempt, type Ended, RELEASED } from './attempt.ts';
import type { ClaimedBytes } from './claimed-bytes.ts';
import type { Leases } from './leases.ts';
import { Pace } from './pace.ts';
import { ReadyAttempts } from './ready-attempts.ts';
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
/** Suspects of other targets wait at most this long for the gate of a target, in milliseconds. */
const LONG_WAIT = 1_000;
/** The next body in a run may have this many bytes, or as many as the one before. */
const NEXT_BODY = 1024 * 1024;
/** Jobs with one order key that run one after the other without a claim; then others that are due have their turn. */
const MAX_RUN = 32;

/**
 * Claims and runs the jobs of one target. It claims some ahead (see `Pace`), so that the handlers need not wait for the
 * database. States of the claim: idle -> claiming (on wake) -> idle. A wake that comes while the worker claims, or has no
 * room, takes effect afterwards. After `stop` it claims nothing.
 */
export class Worker {
  readonly #options: WorkerOptions;
  readonly #pace = new Pace();
  readonly #ready = new ReadyAttempts((attempt) => this.#start(attempt, RELEASED));
  /** Attempts that have begun, until their end is recorded. */
  readonly #begun = new Map<Attempt, Promise<void>>();
  /** The number of those that have not ended. */
  #running = 0;
  #claiming: Promise<void> | undefined;
  /** Whether there may be a job to claim. */
  #pending = false;
  /** The suspect that this worker runs, or will claim once there is room. */
  #suspect: 'none' | 'wanted' | Attempt = 'none';
  #stopped = false;
  #nextTick: NodeJS.Immediate | undefined;

  constructor(options: WorkerOptions) {
    this.#options = options;
  }

  /** The number of running attempts. */
  get running(): number {
    return this.#running;
  }

  get hasSuspect(): boolean {
    return this.#suspect !== 'none';
  }

  /** Claims one suspect as soon as there is room. */
  wakeForSuspect(): void {
    this.#suspect = 'wanted';
    this.wake();
  }

  /** Claims jobs as soon as there is room. */
  wake(): void {
    this.#pending = true;
    if (this.#stopped || this.#claiming !== undefined || this.#room() === 0) return;
    this.#claiming = this.#claim().finally(() => {
      this.#claiming = undefined;
      if (this.#pending) this.wake();
    });
  }

  /** Stops claiming, releases what has not begun, and waits for running attempts; `deadline` aborts them. */
  async stop(deadline: AbortSignal): Promise<void> {
    this.#stopped = true;
    const release = () => {
      for (const attempt of this.#begun.keys()) attempt.release(deadline.reason);
    };
    deadline.addEventListener('abort', release, { once: true });
    if (deadline.aborted) release();
    await this.#end();
    deadline.removeEventListener('abort', release);
  }

  /**
   * Ends all attempts because the process ends unexpectedly. `culprit` has failed with `error`, and all others are
   * released; when it is not known, each of them counts a death.
   */
  async crash(error: unknown, culprit: Attempt | undefined): Promise<void> {
    this.#stopped = true;
    for (const attempt of this.#begun.keys()) {
      if (attempt === culprit) attempt.crash(error);
      else if (culprit === undefined) attempt.crash();
      else attempt.release(error);
    }
    await this.#end();
  }

  /** Waits for the end of all attempts; what has not begun is released. */
  async #end(): Promise<void> {
    this.#begin();
    await this.#claiming;
    while (this.#begun.size > 0) await Promise.all(this.#begun.values());
  }

  /** How many jobs it may claim now. */
  #room(): number {
    const { concurrency, gate } = this.#options.target;
    // A gate counts attempts that begin at once.
    const ahead = gate === undefined ? this.#pace.ahead(performance.now()) : 0;
    // A few at a time would cost as much as many.
    if (2 * this.#ready.size > ahead) return 0;
    return Math.max(0, concurrency + ahead - this.#ready.size - this.#begun.size);
  }

  async #claim(): Promise<void> {
    const { inbox, target, owner, lease, leases, bytes, events } = this.#options;
    for (let room = this.#room(); this.#pending && room > 0 && !this.#stopped; room = this.#room()) {
      // A target that runs nothing may always claim one.
      if (bytes.isFull && this.#begun.size + this.#ready.size > 0) {
        this.#pending = false;
        bytes.onRoom(this.#wake, target.priority);
        return;
      }
      const slots = Math.min(room, target.gate?.free ?? room);
      this.#pending = false;
      if (slots === 0) return this.#awaitGate();
      const share = bytes.share();
      let taken = 0;
      try {
        const renewal = leases.beforeClaim();
        if (renewal !== undefined) await renewal;
        if (this.#stopped) return;
        const suspects = this.#suspect === 'wanted';
        const limit = suspects ? 1 : slots;
        const held = [...this.#ready.jobs, ...Array.from(this.#begun.keys(), ({ job }) => job.job)];
        const leaseUntil = performance.now() + lease;
        const jobs = await inbox.claim(target.name, limit, owner, lease, {
          held,
          suspects,
          maxBytes: share.bytes,
        });
        taken = jobs.reduce((sum, job) => sum + sizeOf(job), 0);
        const mayBeCut = jobs.length > 0 && share.bytes - taken < LARGE_BODY;
        // Jobs that wait for their order may have hidden others.
        const mayHide = jobs.some(({ ordered }) => ordered);
        // A suspect comes before the others, and they after it.
        if (suspects || jobs.length === slots || mayBeCut || mayHide) this.#pending = true;
        const attempts = jobs.map((job) => this.#attempt(job, leaseUntil));
        if (suspects) this.#suspect = attempts[0] ?? 'none';
        this.#add(attempts);
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

  #awaitGate(): void {
    const wait = this.#options.target.gate?.onFree(this.#wake) ?? 0;
    // One that has to wait for long holds up no other target.
    if (wait > LONG_WAIT && this.#suspect === 'wanted') this.#suspect = 'none';
  }

  /** Takes over claimed jobs. */
  #add(attempts: readonly Attempt[]): void {
    this.#options.target.gate?.take(attempts.length);
    for (const attempt of attempts) {
      this.#options.leases.add(attempt);
      this.#ready.add(attempt);
    }
    this.#begin();
  }

  /** Begins attempts while there are free slots; after a stop releases all of them. */
  readonly #begin = (): void => {
    this.#nextTick = undefined;
    while (this.#stopped || this.#running < this.#options.target.concurrency) {
      const next = this.#ready.take();
      if (next === undefined) break;
      this.#start(next);
    }
    this.#ready.watch();
    if (this.#pending) this.wake();
  };

  #start(attempt: Attempt, end?: Ended): void {
    const { leases, bytes, events, onSuspectEnded } = this.#options;
    this.#running++;
    const running = this.#run(attempt, end)
      .catch(events.storeFailed)
      .finally(() => {
        leases.delete(attempt);
        this.#begun.delete(attempt);
        bytes.release(sizeOf(attempt.job));
        if (this.#suspect === attempt) {
          this.#suspect = 'none';
          onSuspectEnded();
        }
        if (this.#pending) this.wake();
      });
    this.#begun.set(attempt, running);
  }

  async #run(attempt: Attempt, end: Ended | undefined): Promise<void> {
    const { events } = this.#options;
    const { job } = attempt;
    const { outcome, error } = end ?? (await this.#endOf(attempt));
    attempt.settling = true;
    this.#running--;
    if (end === undefined) this.#pace.note(performance.now());
    // The next ones begin in another tick, so that handlers that return at once leave time for the doors.
    if (this.#ready.size > 0) this.#nextTick ??= setImmediate(this.#begin);
    const recorded = await this.#record(attempt, outcome);
    if (recorded) events.settled(job, outcome.kind, error);
    else if (!attempt.leaseLost) events.leaseLost(job);
  }

  /** Records an outcome; resolves to false when the lease was lost. In a run the next job with the order key follows. */
  async #record({ job, nth }: Attempt, outcome: Outcome): Promise<boolean> {
    const { inbox, target, owner, lease, bytes } = this.#options;
    if (!job.ordered || (outcome.kind !== 'done' && outcome.kind !== 'dead')) {
      return inbox.settle(job, owner, outcome);
    }
    const mayGoOn = nth < MAX_RUN && !this.#stopped && target.gate?.free !== 0;
    const share = mayGoOn ? bytes.reserve(Math.max(NEXT_BODY, sizeOf(job))) : undefined;
    let next: ClaimedJob | undefined;
    try {
      if (share === undefined) return await inbox.settle(job, owner, outcome);
      const leaseUntil = performance.now() + lease;
      const finished = await inbox.finish(job, owner, outcome, { lease, maxBytes: share.bytes });
      next = finished.next;
      if (next !== undefined) this.#add([this.#attempt(next, leaseUntil, nth + 1)]);
      return finished.recorded;
    } finally {
      share?.settle(next === undefined ? 0 : sizeOf(next));
      // Another job of the key may be claimable now.
      if (next === undefined) this.#pending = true;
    }
  }

  #attempt(job: ClaimedJob, leaseUntil: number, nth = 1): Attempt {
    const { target, events } = this.#options;
    return new Attempt(job, target, leaseUntil, () => events.overdue(job), nth);
  }

  #endOf(attempt: Attempt): Ended | Promise<Ended> {
    const { maxAttempts, gate } = this.#options.target;
    const { attempt: number, deaths } = attempt.job;
    // The answer to the claim came so late that the lease may have ended.
    const isLate = attempt.leaseLost || performance.now() >= attempt.leaseUntil;
    // A pause may have begun while it was claimed.
    if (isLate || this.#stopped || gate?.isPaused) return RELEASED;
    if (deaths >= MAX_DEATHS) {
      const error = `the process ended, or stood still, during each of ${deaths} attempts`;
      return { outcome: { kind: 'dead', error } };
    }
    // Its target allows fewer attempts than before.
    if (number > maxAttempts) return { outcome: { kind: 'dead', error: `had ${number - 1} attempts` } };
    return attempt.run();
  }
}

function sizeOf({ delivery: { body } }: ClaimedJob): number {
  return body.byteLength;
}
