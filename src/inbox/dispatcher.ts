import { randomUUID } from 'node:crypto';
import type { Inbox } from './inbox.ts';
import type { Target } from './target.ts';
import { Lane, type LaneEvents } from './worker.ts';

export interface DispatcherOptions {
  readonly inbox: Inbox;
  readonly targets: readonly Target[];
  readonly events: LaneEvents;
  /** A lease in milliseconds; default 5,000. What a dead process held is claimed again when its lease has ended. */
  readonly lease?: number;
  /** How often to look for jobs whose time has come, in milliseconds; default 500. */
  readonly interval?: number;
}

/**
 * Runs the jobs of the inbox: new ones at once when woken, those to be tried again and those that other processes
 * left behind when their time has come. At least once: a job is recorded as done after it was.
 */
export class Dispatcher {
  readonly #inbox: Inbox;
  readonly #events: LaneEvents;
  readonly #lanes: ReadonlyMap<string, Lane>;
  /** This process, for its leases. */
  readonly #owner = randomUUID();
  readonly #lease: number;
  readonly #interval: number;
  #looking: NodeJS.Timeout | undefined;
  #told: Disposable | undefined;
  /** Whether a look is under way, and whether it may have missed what came since. */
  #isLooking = false;
  #lookAgain = false;
  #renewing: NodeJS.Timeout | undefined;

  constructor({ inbox, targets, events, lease = 5_000, interval = 500 }: DispatcherOptions) {
    this.#inbox = inbox;
    this.#events = events;
    this.#lease = lease;
    this.#interval = interval;
    this.#lanes = new Map(
      targets.map((target) => [target.name, new Lane({ inbox, target, owner: this.#owner, lease, events })]),
    );
  }

  /** Begins to handle whatever waits. */
  start(): void {
    this.#looking = setInterval(() => this.#lookForWork(), this.#interval);
    this.#told = this.#inbox.onWork?.(() => this.#lookForWork());
    // Three chances to renew a lease before it ends.
    this.#renewing = setInterval(() => this.#renew(), this.#lease / 3);
    this.#lookForWork();
  }

  /** Says that a target has a new job. */
  wake(target: string): void {
    this.#lanes.get(target)?.wake();
  }

  /**
   * Claims nothing more and waits for the attempts under way; when `deadline` fires their signals are aborted
   * and their jobs are given back.
   */
  async stop(deadline: AbortSignal): Promise<void> {
    clearInterval(this.#looking);
    this.#told?.[Symbol.dispose]();
    await Promise.all([...this.#lanes.values()].map((lane) => lane.stop(deadline)));
    clearInterval(this.#renewing);
  }

  async #lookForWork(): Promise<void> {
    if (this.#isLooking) {
      this.#lookAgain = true;
      return;
    }
    this.#isLooking = true;
    try {
      for (const target of await this.#inbox.due([...this.#lanes.keys()], Date.now())) this.wake(target);
    } catch (error) {
      this.#events.storeFailed(error);
    }
    this.#isLooking = false;
    if (!this.#lookAgain) return;
    this.#lookAgain = false;
    void this.#lookForWork();
  }

  async #renew(): Promise<void> {
    const jobs = [...this.#lanes.values()].flatMap(({ inHand }) => inHand);
    if (jobs.length === 0) return;
    try {
      await this.#inbox.renew(this.#owner, jobs, Date.now() + this.#lease);
    } catch (error) {
      this.#events.storeFailed(error);
    }
  }
}
