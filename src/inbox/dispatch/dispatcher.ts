import { randomUUID } from 'node:crypto';
import type { Inbox } from '../inbox.ts';
import { PeriodicTask } from './periodic-task.ts';
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
}

/**
 * Runs the jobs of the inbox with one worker per target. A wake-up claims new jobs at once; a poll finds retries and
 * the jobs of dead processes. At least once: a job is recorded as done after its target has run.
 */
export class Dispatcher {
  readonly #inbox: Inbox;
  readonly #events: WorkerEvents;
  readonly #workers: ReadonlyMap<string, Worker>;
  /** Identifies this process in its leases. */
  readonly #owner = randomUUID();
  readonly #lease: number;
  readonly #polls: PeriodicTask;
  readonly #renewals: PeriodicTask;
  #subscription: Disposable | undefined;

  constructor({ inbox, targets, events, lease = 5_000, interval = 500 }: DispatcherOptions) {
    this.#inbox = inbox;
    this.#events = events;
    this.#lease = lease;
    this.#polls = new PeriodicTask(interval, () => this.#poll());
    // Three attempts to renew a lease before it ends.
    this.#renewals = new PeriodicTask(lease / 3, () => this.#renewLeases());
    this.#workers = new Map(
      targets.map((target) => [
        target.name,
        new Worker({ inbox, target, owner: this.#owner, lease, events }),
      ]),
    );
  }

  start(): void {
    this.#subscription = this.#inbox.onWork?.(() => this.#polls.request());
    this.#renewals.start();
    this.#polls.start();
  }

  /** Tells the worker of a target that there is a new job. */
  wake(target: string): void {
    this.#workers.get(target)?.wake();
  }

  /** The number of running attempts by target. */
  get running(): ReadonlyMap<string, number> {
    return new Map([...this.#workers].map(([target, { leased }]) => [target, leased.length]));
  }

  /** Stops claiming and waits for running attempts; `deadline` aborts them and releases their jobs. */
  async stop(deadline: AbortSignal): Promise<void> {
    // Not awaited, nor is a renewal: while the database hangs they outlast the deadline.
    void this.#polls.stop();
    this.#subscription?.[Symbol.dispose]();
    await Promise.all([...this.#workers.values()].map((worker) => worker.stop(deadline)));
    void this.#renewals.stop();
  }

  async #poll(): Promise<void> {
    try {
      for (const target of await this.#inbox.due([...this.#workers.keys()], Date.now())) this.wake(target);
    } catch (error) {
      this.#events.storeFailed(error);
    }
  }

  async #renewLeases(): Promise<void> {
    const jobs = [...this.#workers.values()].flatMap(({ leased }) => leased);
    if (jobs.length === 0) return;
    try {
      await this.#inbox.renew(this.#owner, jobs, Date.now() + this.#lease);
    } catch (error) {
      this.#events.storeFailed(error);
    }
  }
}
