import type { MaybePromise } from '../../core/maybe-promise.ts';
import { type ClaimedJob, MAX_CRASHES } from '../delivery.ts';
import type { Inbox, Outcome } from '../inbox.ts';
import { Attempt, type Ended, RELEASED } from './attempt.ts';
import type { HandlingShare } from './handling-share.ts';
import { type ClaimedBytes, HeldAttempts, Prefetch } from './held-attempts.ts';
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

interface WorkerOptions {
  readonly inbox: Inbox;
  readonly target: Target;
  readonly owner: string;
  /** Length of a lease in milliseconds. */
  readonly lease: number;
  readonly leases: Leases;
  /** Shared by the workers of a process, as is `share`. */
  readonly bytes: ClaimedBytes;
  readonly share: HandlingShare;
  readonly events: WorkerEvents;
  /** Called when the quarantined job that this worker ran has ended. */
  onQuarantinedEnded(): void;
}

/** A slot for a job that is about to be stored. One of its methods has to be called, once. */
export interface Slot {
  /** Begins the job, which was stored as claimed. */
  begin(job: ClaimedJob): void;
  /** The job was not stored, or is left to a claim. */
  giveUp(): void;
}

/** An attempt that has ended, until its end is recorded. */
interface EndedAttempt extends Ended {
  readonly attempt: Attempt;
}

/** When a claim leaves less than this of its share, in bytes, the next body may not have fit. */
const LARGE_BODY = 25 * 1024 * 1024;
/** Quarantined jobs of other targets wait at most this long for the rate limit of a target, in milliseconds. */
const LONG_WAIT = 1_000;
/** The next body in a run may have this many bytes, or as many as the one before. */
const NEXT_BODY = 1024 * 1024;
/** Jobs with one order key that run one after the other without a claim; then others that are due have their turn. */
const MAX_RUN = 32;

/**
 * Runs the jobs of one target: those that it claims, some of them ahead (see `Prefetch`), so that the handlers need not wait for
 * the database, and those that are handed over to it when they are stored. Attempts begin in the turns of `HandlingShare`.
 * States of the claim: idle -> claiming (on wake) -> idle. A wake that comes while the worker claims, or has no room, takes
 * effect afterwards. After `stop` it claims nothing.
 */
export class Worker {
  readonly #options: WorkerOptions;
  readonly #prefetch = new Prefetch();
  /** Its attempts, until their end is recorded. */
  readonly #held = new HeldAttempts((attempt) => this.#start(attempt, RELEASED));
  /** The number of those that have begun and not ended. */
  #running = 0;
  /** Resolves once no attempt has begun whose end is not recorded; set while somebody waits for that. */
  #allRecorded: PromiseWithResolvers<void> | undefined;
  /** Successes whose end is recorded together, before anything else happens. */
  #successes: EndedAttempt[] = [];
  /** Jobs that are being stored to be handed over. */
  #storing = 0;
  /** Resolves once there are none of them; set while somebody waits for that. */
  #allStored: PromiseWithResolvers<void> | undefined;
  #claiming: Promise<void> | undefined;
  /** Whether there may be a job to claim. */
  #pending = false;
  /** Whether the last look has found nothing to claim; not while that waits for a rate limit or for bytes. */
  #isCaughtUp = false;
  /** The quarantined job that this worker runs, or will claim once there is room. */
  #quarantined: 'none' | 'wanted' | Attempt = 'none';
  #stopped = false;

  constructor(options: WorkerOptions) {
    this.#options = options;
    options.leases.include(this.#held);
  }

  /** The number of running attempts. */
  get running(): number {
    return this.#running;
  }

  get hasQuarantined(): boolean {
    return this.#quarantined !== 'none';
  }

  /** Claims one quarantined job as soon as there is room. */
  wakeForQuarantined(): void {
    this.#quarantined = 'wanted';
    this.wake();
  }

  /** Claims jobs as soon as there is room. */
  wake(): void {
    this.#pending = true;
    this.#isCaughtUp = false;
    if (this.#stopped || this.#claiming !== undefined || this.#room() === 0) return;
    this.#claiming = this.#claim().finally(() => {
      this.#claiming = undefined;
      if (this.#pending) this.wake();
    });
  }

  /** Notes that a poll has found no job that is due. */
  rest(): void {
    this.#isCaughtUp = !this.#pending && this.#claiming === undefined;
  }

  /**
   * Sets aside a slot for a job that is about to be stored, with a body of so many bytes. Undefined when there is none, or
   * when a job may be waiting that comes before it.
   */
  reserve(size: number): Slot | undefined {
    const { target, lease, bytes } = this.#options;
    if (this.#stopped || !this.#isCaughtUp || this.#pending || this.#claiming !== undefined) return undefined;
    // Where it is unknown whether a job was stored, its first claim counts as the second attempt, and there has to be one.
    if (target.maxAttempts < 2) return undefined;
    if (this.#free() <= 0 || (target.rateLimit?.free ?? Number.POSITIVE_INFINITY) <= this.#storing)
      return undefined;
    const share = bytes.reserve(size);
    if (share === undefined) return undefined;
    // The lease begins when the store has the job, which is later.
    const leaseUntil = performance.now() + lease;
    this.#storing++;
    const stored = (taken: number) => {
      share.settle(taken);
      if (--this.#storing === 0) this.#allStored?.resolve();
    };
    return {
      begin: (job) => {
        stored(size);
        this.#add([this.#attempt(job, leaseUntil)]);
      },
      giveUp: () => stored(0),
    };
  }

  /** Stops claiming, releases what has not begun, and waits for running attempts; `deadline` aborts them. */
  async stop(deadline: AbortSignal): Promise<void> {
    this.#stopped = true;
    const release = () => {
      for (const attempt of this.#begun()) attempt.release(deadline.reason);
    };
    deadline.addEventListener('abort', release, { once: true });
    if (deadline.aborted) release();
    await this.#end();
    deadline.removeEventListener('abort', release);
  }

  /**
   * Ends all attempts because the process ends unexpectedly. `culprit` has failed with `error`, and all others are
   * released; when it is not known, each of them counts a crash.
   */
  async crash(error: unknown, culprit: Attempt | undefined): Promise<void> {
    this.#stopped = true;
    for (const attempt of this.#begun()) {
      if (attempt === culprit) attempt.crash(error);
      else if (culprit === undefined) attempt.crash();
      else attempt.release(error);
    }
    await this.#end();
  }

  /** Waits for the end of all attempts; what has not begun is released. */
  async #end(): Promise<void> {
    this.#releaseReady();
    await this.#claiming;
    await this.#whenStored();
    this.#allRecorded ??= Promise.withResolvers();
    if (this.#held.size > 0) await this.#allRecorded.promise;
  }

  async #whenStored(): Promise<void> {
    if (this.#storing === 0) return;
    this.#allStored ??= Promise.withResolvers();
    await this.#allStored.promise;
    this.#allStored = undefined;
  }

  #releaseReady(): void {
    for (let next = this.#held.take(); next !== undefined; next = this.#held.take()) {
      this.#start(next, RELEASED);
    }
  }

  /** The attempts that have begun, and whose end is not recorded. */
  #begun(): readonly Attempt[] {
    return [...this.#held].filter(({ waitsSince }) => waitsSince === undefined);
  }

  /** How many jobs it may claim now. */
  #room(): number {
    // A few at a time would cost as much as many.
    return 2 * this.#held.waiting > this.#ahead() ? 0 : Math.max(0, this.#free());
  }

  /** How many more jobs it may have. */
  #free(): number {
    return this.#options.target.concurrency + this.#ahead() - this.#held.size - this.#storing;
  }

  /** How many jobs it may have beyond its slots. */
  #ahead(): number {
    const { share, target } = this.#options;
    // A rate limit counts attempts that begin at once.
    return target.rateLimit === undefined
      ? Math.floor(this.#prefetch.ahead(performance.now()) * share.share)
      : 0;
  }

  async #claim(): Promise<void> {
    const { inbox, target, owner, lease, leases, bytes, events } = this.#options;
    // The lease of a job that is being stored could end first, and nobody knows its number yet.
    if (this.#storing > 0) await this.#whenStored();
    for (let room = this.#room(); this.#pending && room > 0 && !this.#stopped; room = this.#room()) {
      // A target that runs nothing may always claim one.
      if (bytes.isFull && this.#held.size > 0) {
        this.#pending = false;
        bytes.onRoom(this.#wake, target.priority);
        return;
      }
      const slots = Math.min(room, target.rateLimit?.free ?? room);
      this.#pending = false;
      if (slots === 0) return this.#awaitRateLimit();
      const share = bytes.share();
      let taken = 0;
      try {
        const renewal = leases.beforeClaim();
        if (renewal !== undefined) await renewal;
        if (this.#stopped) return;
        const quarantined = this.#quarantined === 'wanted';
        const limit = quarantined ? 1 : slots;
        const held = Array.from(this.#held, ({ job }) => job.job);
        const leaseUntil = performance.now() + lease;
        const jobs = await inbox.claim(target.name, limit, owner, lease, {
          held,
          quarantined,
          maxBytes: share.bytes,
        });
        taken = jobs.reduce((sum, job) => sum + sizeOf(job), 0);
        const mayBeCut = jobs.length > 0 && share.bytes - taken < LARGE_BODY;
        // Jobs that wait for their order may have hidden others.
        const mayHide = jobs.some(({ ordered }) => ordered);
        // A quarantined job comes before the others, and they after it.
        if (quarantined || jobs.length === slots || mayBeCut || mayHide) this.#pending = true;
        this.#isCaughtUp = !this.#pending;
        const attempts = jobs.map((job) => this.#attempt(job, leaseUntil));
        if (quarantined) this.#quarantined = attempts[0] ?? 'none';
        this.#add(attempts);
      } catch (error) {
        // The next poll retries.
        if (this.#quarantined === 'wanted') this.#quarantined = 'none';
        events.storeFailed(error);
      } finally {
        share.settle(taken);
      }
    }
  }

  readonly #wake = (): void => this.wake();

  #awaitRateLimit(): void {
    const wait = this.#options.target.rateLimit?.onFree(this.#wake) ?? 0;
    // One that has to wait for long holds up no other target.
    if (wait > LONG_WAIT && this.#quarantined === 'wanted') this.#quarantined = 'none';
  }

  /** Takes over claimed jobs; after a stop releases them. */
  #add(attempts: readonly Attempt[]): void {
    this.#options.target.rateLimit?.take(attempts.length);
    for (const attempt of attempts) this.#held.add(attempt);
    this.#options.leases.watch();
    if (this.#stopped) this.#releaseReady();
    else this.#requestTurn();
  }

  /** Asks for a turn when an attempt can begin. */
  #requestTurn(): void {
    const { share, target } = this.#options;
    if (this.#held.waiting > 0 && this.#running < target.concurrency) share.request(this.#begin);
  }

  readonly #begin = (end: number): number => {
    let begun = 0;
    while (this.#running < this.#options.target.concurrency) {
      const next = this.#held.take();
      if (next === undefined) break;
      this.#start(next);
      begun++;
      if (performance.now() >= end) break;
    }
    this.#requestTurn();
    this.#held.watch();
    if (this.#pending) this.wake();
    return begun;
  };

  #start(attempt: Attempt, given?: Ended): void {
    this.#running++;
    const end = ({ outcome, error }: Ended) => {
      attempt.settling = true;
      this.#running--;
      if (given === undefined) this.#prefetch.note(performance.now());
      this.#record({ attempt, outcome, error });
      this.#requestTurn();
    };
    const ended = given ?? this.#endOf(attempt);
    if (ended instanceof Promise) void ended.then(end);
    else end(ended);
  }

  #record(ended: EndedAttempt): void {
    const { attempt, outcome } = ended;
    const hasEnded = outcome.kind === 'done' || outcome.kind === 'dead';
    if (attempt.job.ordered && hasEnded) {
      this.#recorded(ended, this.#finish(attempt, outcome));
    } else if (outcome.kind === 'done' && outcome.trace?.answer === null) {
      if (this.#successes.push(ended) === 1) queueMicrotask(this.#recordSuccesses);
    } else this.#settle(ended);
  }

  #settle(ended: EndedAttempt): void {
    const { inbox, owner } = this.#options;
    this.#recorded(ended, inbox.settle(ended.attempt.job, owner, ended.outcome));
  }

  readonly #recordSuccesses = (): void => {
    const { inbox, owner } = this.#options;
    const all = this.#successes;
    this.#successes = [];
    const each = () => {
      for (const ended of all) this.#settle(ended);
    };
    if (all.length === 1 || inbox.settleDone === undefined) {
      each();
      return;
    }
    const successes = all.map(({ attempt: { job }, outcome: { trace } }) => {
      return { job, duration: trace?.duration ?? 0 };
    });
    inbox.settleDone(successes, owner).then(
      (recorded) => {
        for (const [i, each] of all.entries()) this.#told(each, recorded[i] === true);
      },
      // One that cannot be recorded takes no other one with it.
      each,
    );
  };

  #recorded(ended: EndedAttempt, recording: Promise<boolean>): void {
    recording.then(
      (recorded) => this.#told(ended, recorded),
      (error: unknown) => {
        this.#options.events.storeFailed(error);
        this.#forget(ended.attempt);
      },
    );
  }

  /** `recorded` is false when the lease was lost. */
  #told({ attempt, outcome, error }: EndedAttempt, recorded: boolean): void {
    const { events } = this.#options;
    try {
      if (recorded) events.settled(attempt.job, outcome.kind, error);
      else if (!attempt.leaseLost) events.leaseLost(attempt.job);
    } finally {
      this.#forget(attempt);
    }
  }

  #forget(attempt: Attempt): void {
    const { bytes, onQuarantinedEnded } = this.#options;
    this.#held.delete(attempt);
    bytes.release(sizeOf(attempt.job));
    if (this.#quarantined === attempt) {
      this.#quarantined = 'none';
      onQuarantinedEnded();
    }
    if (this.#held.size === 0) this.#allRecorded?.resolve();
    if (this.#pending) this.wake();
  }

  /**
   * Records that a job with an order key has ended; the next one with the key follows. Resolves to false when the lease was
   * lost.
   */
  async #finish({ job, nth }: Attempt, outcome: Extract<Outcome, { readonly kind: 'done' | 'dead' }>) {
    const { inbox, target, owner, lease, bytes } = this.#options;
    const mayGoOn = nth < MAX_RUN && !this.#stopped && target.rateLimit?.free !== 0;
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

  #endOf(attempt: Attempt): MaybePromise<Ended> {
    const { maxAttempts, rateLimit } = this.#options.target;
    const { attempt: number, crashes } = attempt.job;
    // The answer to the claim came so late that the lease may have ended.
    const isLate = attempt.leaseLost || performance.now() >= attempt.leaseUntil;
    // A pause may have begun while it was claimed.
    if (isLate || this.#stopped || rateLimit?.isPaused) return RELEASED;
    if (crashes >= MAX_CRASHES) {
      const error = `the process ended, or stood still, during each of ${crashes} attempts`;
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
