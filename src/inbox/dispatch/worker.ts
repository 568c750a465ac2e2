import type { MaybePromise } from '../../core/scheduler.ts';
import type { ClaimedJob } from '../delivery.ts';
import type { Inbox, Outcome } from '../inbox.ts';
import { Attempt } from './attempt.ts';
import { claimRound, sizeOf } from './claim-round.ts';
import type { HandlingShare } from './handling-share.ts';
import { type ClaimedBytes, HeldAttempts, Prefetch } from './held-attempts.ts';
import type { Leases } from './leases.ts';
import type { Target } from './target.ts';

type Ended = Awaited<ReturnType<Attempt['run']>>;

/** Callbacks for events of jobs. */
export interface WorkerEvents {
  /** An attempt ended and its outcome was recorded. */
  settled(job: ClaimedJob, outcome: Outcome['kind'], error?: unknown): void;
  /** The lease ended, or may have, before the attempt did, so another process may run the job too. */
  leaseLost(job: ClaimedJob): void;
  /** A target is still running long after its signal was aborted; other attempts may now run beside it. */
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
  /** Shared by the workers of a process, like `share`. */
  readonly bytes: ClaimedBytes;
  readonly share: HandlingShare;
  readonly events: WorkerEvents;
  /** Called when this worker's quarantined job has ended. */
  onQuarantinedEnded(): void;
}

/** A slot for a job that is about to be stored. Exactly one of its methods must be called, once. */
interface Slot {
  /** Starts the job, which was stored as claimed. */
  begin(job: ClaimedJob): void;
  /** Frees the slot: the job was not stored, or is left to a claim. */
  giveUp(): void;
}

/** An ended attempt before its outcome is recorded. */
interface EndedAttempt extends Ended {
  readonly attempt: Attempt;
}

/** Quarantined jobs of other targets wait at most this long for a target's rate limit, in milliseconds. */
const LONG_WAIT = 1_000;
/** Maximum size of the next body in a run, in bytes, unless the previous body was larger. */
const NEXT_BODY = 1024 * 1024;
/** Maximum jobs with one order key that run in succession without a claim, before other due jobs. */
const MAX_RUN = 32;

/** A job with this many crashes is dead. */
const MAX_CRASHES = 5;

/**
 * Runs the jobs of one target: those that it claims, some of them ahead (see `Prefetch`) so that handlers
 * need not wait for the database, and those handed to it as they are stored. Attempts start in the turns of
 * `HandlingShare`. The claim is idle or claiming. A wake-up while the worker claims, or cannot take a job,
 * takes effect afterwards. After `stop` it claims nothing.
 */
export class Worker {
  readonly #options: WorkerOptions;
  readonly #prefetch = new Prefetch();
  /** Its attempts, until their outcome is recorded. */
  readonly #held = new HeldAttempts((attempt) => this.#start(attempt, Attempt.RELEASED));
  /** The number of attempts whose target is running. */
  #running = 0;
  /** Resolves once no attempt is held; created when `#end` waits for it. */
  #allRecorded: PromiseWithResolvers<void> | undefined;
  /** Successes to record together in the next microtask. */
  #successes: EndedAttempt[] = [];
  /** The number of jobs being stored for a handover. */
  #storing = 0;
  /** Resolves once `#storing` is 0; created on demand. */
  #allStored: PromiseWithResolvers<void> | undefined;
  #claiming: Promise<void> | undefined;
  /** Whether there may be a job to claim. */
  #pending = false;
  /** Whether the last claim or poll left no job; false while a claim waits for a rate limit or for bytes. */
  #isCaughtUp = false;
  /** The quarantined job that this worker runs, or `wanted` if it is to claim one. */
  #quarantined: 'none' | 'wanted' | Attempt = 'none';
  /** The target from which a quarantined job is wanted. */
  #quarantinedTarget: string;
  #stopped = false;

  constructor(options: WorkerOptions) {
    this.#options = options;
    this.#quarantinedTarget = options.target.name;
    options.leases.include(this.#held);
  }

  /** The number of running attempts. */
  get running(): number {
    return this.#running;
  }

  get hasQuarantined(): boolean {
    return this.#quarantined !== 'none';
  }

  /** Claims one quarantined job of a target as soon as possible. */
  wakeForQuarantined(target: string): void {
    this.#quarantined = 'wanted';
    this.#quarantinedTarget = target;
    this.wake();
  }

  /** Claims jobs as soon as possible. */
  wake(): void {
    this.#pending = true;
    this.#isCaughtUp = false;
    if (this.#stopped || this.#claiming !== undefined || this.#claimable() === 0) return;
    this.#claiming = this.#claim().finally(() => {
      this.#claiming = undefined;
      if (this.#pending) this.wake();
    });
  }

  /** Notes that a poll has found no due job. */
  rest(): void {
    this.#isCaughtUp = !this.#pending && this.#claiming === undefined;
  }

  /** Reserves a slot for a job of `name` to store with a body of `size` bytes; undefined if it has to wait. */
  reserve(size: number, name: string): Slot | undefined {
    const { target, lease, bytes } = this.#options;
    const { group } = target;
    if (this.#stopped) return undefined;
    // Targets of a group are behind or keep up each on its own.
    const isBehind = !this.#isCaughtUp || this.#pending || this.#claiming !== undefined;
    if (group === undefined && isBehind) return undefined;
    // If it is unknown whether the job was stored, its first claim counts as the second attempt, which must
    // be allowed.
    if (target.maxAttempts < 2) return undefined;
    if (this.#free() <= 0 || (target.rateLimit?.free ?? Number.POSITIVE_INFINITY) <= this.#storing)
      return undefined;
    const share = bytes.reserve(size);
    if (share === undefined) return undefined;
    if (group?.reserve(name) === false) {
      share.settle(0);
      return undefined;
    }
    // The store starts the lease when it gets the job, which is later.
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
      giveUp: () => {
        group?.ended(name);
        stored(0);
      },
    };
  }

  /** Stops claiming, releases waiting jobs and waits for running ones, which `deadline` aborts. */
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

  /** Ends all attempts: `culprit` fails with `error`, others are released, or crash if it is unknown. */
  async crash(error: unknown, culprit: Attempt | undefined): Promise<void> {
    this.#stopped = true;
    for (const attempt of this.#begun()) {
      if (attempt === culprit) attempt.crash(error);
      else if (culprit === undefined) attempt.crash();
      else attempt.release(error);
    }
    await this.#end();
  }

  /** Waits until all attempts have ended; those not started are released. */
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
      this.#start(next, Attempt.RELEASED);
    }
  }

  /** Started attempts whose outcome is not recorded yet. */
  #begun(): readonly Attempt[] {
    return [...this.#held].filter(({ waitsSince }) => waitsSince === undefined);
  }

  /** How many jobs may be claimed now. */
  #claimable(): number {
    // Claiming a few jobs costs as much as claiming many.
    return 2 * this.#held.waiting > this.#ahead() ? 0 : Math.max(0, this.#free());
  }

  /** How many more jobs the worker may hold. */
  #free(): number {
    return this.#options.target.concurrency + this.#ahead() - this.#held.size - this.#storing;
  }

  /** How many jobs the worker may hold beyond its slots. */
  #ahead(): number {
    const { share, target } = this.#options;
    // A rate limit counts claimed jobs, so they must start at once.
    return target.rateLimit === undefined && target.group === undefined
      ? Math.floor(this.#prefetch.ahead(performance.now()) * share.share)
      : 0;
  }

  async #claim(): Promise<void> {
    const { inbox, target, owner, lease, leases, bytes, events } = this.#options;
    // The lease of a job being stored could end during the claim, and its number, needed for `held`, is not
    // known yet. Jobs of a group are stored without a pause, so that its claims would never begin.
    if (this.#storing > 0 && target.group === undefined) await this.#whenStored();
    for (
      let claimable = this.#claimable();
      this.#pending && claimable > 0 && !this.#stopped;
      claimable = this.#claimable()
    ) {
      // A worker without jobs may always claim one.
      if (bytes.isFull && this.#held.size > 0) {
        this.#pending = false;
        bytes.onFree(this.#wake, target.priority);
        return;
      }
      const slots = Math.min(claimable, target.rateLimit?.free ?? claimable);
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
        const leaseUntil = performance.now() + lease;
        const { jobs, mayHaveMore } = await claimRound({
          inbox,
          owner,
          lease,
          target: quarantined ? this.#quarantinedTarget : target.name,
          group: target.group,
          limit,
          quarantined,
          held: this.#held,
          maxBytes: share.bytes,
          events,
        });
        taken = jobs.reduce((sum, job) => sum + sizeOf(job), 0);
        // Other jobs are claimed after the quarantined one.
        if (quarantined || mayHaveMore) this.#pending = true;
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
    // Gives up the quarantined slot, so that a long wait does not hold up other targets.
    if (wait > LONG_WAIT && this.#quarantined === 'wanted') this.#quarantined = 'none';
  }

  /** Takes over claimed jobs, or releases them after a stop. */
  #add(attempts: readonly Attempt[]): void {
    this.#options.target.rateLimit?.take(attempts.length);
    for (const attempt of attempts) this.#held.add(attempt);
    this.#options.leases.watch();
    if (this.#stopped) this.#releaseReady();
    else this.#requestTurn();
  }

  /** Requests a turn if an attempt can start. */
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
    } else if (outcome.kind === 'done') {
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
    const successes = all.map(({ attempt: { job }, outcome: { trace } }) => ({ job, trace }));
    inbox.settleDone(successes, owner).then(
      (recorded) => {
        for (const [i, each] of all.entries()) this.#told(each, recorded[i] === true);
      },
      // Recorded one by one, so that a failing outcome does not affect the others.
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

  /** `recorded` is false if the lease was lost. */
  #told({ attempt, outcome, error }: EndedAttempt, recorded: boolean): void {
    const { events } = this.#options;
    try {
      if (recorded) events.settled(attempt.job, outcome.kind, error);
      else if (!attempt.leaseLost) events.leaseLost(attempt.job);
    } finally {
      this.#forget(attempt, outcome.kind);
    }
  }

  #forget(attempt: Attempt, outcome?: Outcome['kind']): void {
    const { bytes, target, onQuarantinedEnded } = this.#options;
    this.#held.delete(attempt);
    if (target.group !== undefined) {
      target.group.ended(attempt.job.target, outcome);
      this.#pending ||= target.group.isReady;
    }
    bytes.release(sizeOf(attempt.job));
    if (this.#quarantined === attempt) {
      this.#quarantined = 'none';
      onQuarantinedEnded();
    }
    if (this.#held.size === 0) this.#allRecorded?.resolve();
    if (this.#pending) this.wake();
  }

  /** Records the end of a job with an order key and starts the key's next; false if the lease was lost. */
  async #finish({ job, nth }: Attempt, outcome: Extract<Outcome, { readonly kind: 'done' | 'dead' }>) {
    const { inbox, target, owner, lease, bytes } = this.#options;
    const { group } = target;
    const isLimited = target.rateLimit?.free === 0 || group?.mayFollow(job.target) === false;
    const mayGoOn = nth < MAX_RUN && !this.#stopped && !isLimited;
    const share = mayGoOn ? bytes.reserve(Math.max(NEXT_BODY, sizeOf(job))) : undefined;
    let next: ClaimedJob | undefined;
    try {
      if (share === undefined) return await inbox.settle(job, owner, outcome);
      const leaseUntil = performance.now() + lease;
      const finished = await inbox.finish(job, owner, outcome, { lease, maxBytes: share.bytes });
      next = finished.next;
      if (next !== undefined) {
        group?.took(next.target);
        this.#add([this.#attempt(next, leaseUntil, nth + 1)]);
      }
      return finished.recorded;
    } finally {
      share?.settle(next === undefined ? 0 : sizeOf(next));
      // Another job of the key may now be claimable.
      if (next === undefined) group?.note(job.target);
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
    // The claim was answered so late that the lease may have ended.
    const isLate = attempt.leaseLost || performance.now() >= attempt.leaseUntil;
    // A pause may have started during the claim.
    if (isLate || this.#stopped || rateLimit?.isPaused) return Attempt.RELEASED;
    if (crashes >= MAX_CRASHES) {
      const error = `the process crashed or stalled during each of ${crashes} attempts`;
      return { outcome: { kind: 'dead', error } };
    }
    // The target now allows fewer attempts than before.
    if (number > maxAttempts) return { outcome: { kind: 'dead', error: `had ${number - 1} attempts` } };
    return attempt.run();
  }
}
