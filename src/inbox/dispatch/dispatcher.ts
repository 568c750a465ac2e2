import type { Inbox } from '../inbox.ts';
import { currentAttempt } from './attempt.ts';
import { ClaimedBytes } from './claimed-bytes.ts';
import { Leases } from './leases.ts';
import { PeriodicTask } from './periodic-task.ts';
import { processName } from './process-name.ts';
import type { Target } from './target.ts';
import { Worker, type WorkerEvents } from './worker.ts';

export interface DispatcherOptions {
  readonly inbox: Inbox;
  readonly targets: readonly Target[];
  readonly events: WorkerEvents;
  /** Length of a lease in milliseconds; default 5,000. Another process claims the jobs of a dead one after it. */
  readonly lease?: number;
  /** Interval of the polls for due jobs, in milliseconds; default 500. */
  readonly interval?: number;
  /** Maximum size of the bodies of all running attempts in bytes; one for each target comes on top. Default 64 MiB. */
  readonly maxBytes?: number;
}

/**
 * Runs the jobs of the inbox with one worker per target. A wake-up claims new jobs at once; a poll finds retries and
 * the jobs of dead processes. At least once: a job is recorded as done after its target has run.
 */
export class Dispatcher {
  readonly #inbox: Inbox;
  readonly #events: WorkerEvents;
  readonly #workers: ReadonlyMap<string, Worker>;
  readonly #leases: Leases;
  readonly #polls: PeriodicTask;
  #subscription: Disposable | undefined;

  constructor({ inbox, targets, events, lease = 5_000, interval = 500, maxBytes }: DispatcherOptions) {
    this.#inbox = inbox;
    this.#events = events;
    this.#polls = new PeriodicTask(interval, () => this.#poll());
    const owner = processName();
    const leases = new Leases({ inbox, owner, lease, events });
    this.#leases = leases;
    const bytes = new ClaimedBytes(maxBytes);
    // In the order in which a poll wakes them.
    const ordered = targets.toSorted((one, other) => (other.priority ?? 0) - (one.priority ?? 0));
    this.#workers = new Map(
      ordered.map((target) => [
        target.name,
        new Worker({
          inbox,
          target,
          owner,
          lease,
          leases,
          bytes,
          events,
          onSuspectEnded: () => this.#polls.request(),
        }),
      ]),
    );
  }

  start(): void {
    this.#subscription = this.#inbox.onWork?.(() => this.#polls.request());
    this.#leases.start();
    this.#polls.start();
  }

  /** Tells the worker of a target that there is a new job. */
  wake(target: string): void {
    this.#workers.get(target)?.wake();
  }

  /** The number of running attempts by target. */
  get running(): ReadonlyMap<string, number> {
    return new Map([...this.#workers].map(([target, { running }]) => [target, running]));
  }

  /** Stops claiming and waits for running attempts; `deadline` aborts them and releases their jobs. */
  async stop(deadline: AbortSignal): Promise<void> {
    // Not awaited: while the database hangs a poll outlasts the deadline.
    void this.#polls.stop();
    this.#subscription?.[Symbol.dispose]();
    await Promise.all([...this.#workers.values()].map((worker) => worker.stop(deadline)));
    this.#leases.stop();
  }

  /**
   * Ends all attempts because of an error that nobody handled. Called by the listener for the error, which still belongs
   * to the attempt that has caused it: that one has failed, all others are released.
   */
  async crash(error: unknown): Promise<void> {
    const culprit = currentAttempt();
    void this.#polls.stop();
    await Promise.all([...this.#workers.values()].map((worker) => worker.crash(error, culprit)));
  }

  async #poll(): Promise<void> {
    try {
      await this.#leases.beforeClaim();
      const targets = [...this.#workers.keys()];
      const due = new Set(await this.#inbox.due(targets));
      for (const target of targets) if (due.has(target)) this.wake(target);
      await this.#wakeForSuspect(targets);
    } catch (error) {
      this.#events.storeFailed(error);
    }
  }

  /** Has one suspect run at a time in this process, so that the one that ends it takes no other one with it. */
  async #wakeForSuspect(targets: readonly string[]): Promise<void> {
    if ([...this.#workers.values()].some(({ hasSuspect }) => hasSuspect)) return;
    const due = await this.#inbox.dueSuspects(targets);
    // One that cannot be claimed yet holds up no other target.
    const target = due[Math.floor(Math.random() * due.length)];
    if (target !== undefined) this.#workers.get(target)?.wakeForSuspect();
  }
}
