import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { NewDelivery } from '../delivery.ts';
import { type Appended, appendedOnly, type Inbox } from '../inbox.ts';
import { Attempt } from './attempt.ts';
import { HandlingShare } from './handling-share.ts';
import { ClaimedBytes } from './held-attempts.ts';
import { Leases } from './leases.ts';
import { PeriodicTask } from './periodic-task.ts';
import type { Target, TargetGroup } from './target.ts';
import { Worker, type WorkerEvents } from './worker.ts';

type Slot = NonNullable<ReturnType<Worker['reserve']>>;

/** A group of targets with its worker. */
interface Group {
  readonly group: TargetGroup;
  readonly worker: Worker;
  /** The target after which the next scan begins. */
  after: string;
}

interface DispatcherOptions {
  readonly inbox: Inbox;
  readonly targets: readonly Target[];
  readonly events: WorkerEvents;
  /** Length of a lease in milliseconds, after which other processes claim its jobs. Default: 5,000. */
  readonly lease?: number;
  /** Interval of the polls for due jobs in milliseconds. Default: 500. */
  readonly interval?: number;
  /** Maximum bytes of the bodies of running attempts, plus one body per target. Default: 64 MiB. */
  readonly maxBytes?: number;
  /** Shares the time of the event loop with the doors. Default: one that uses the clocks of this process. */
  readonly share?: HandlingShare;
}

/**
 * Runs the jobs of the inbox with one worker per target. New jobs are handed to the workers as they are
 * stored; a worker that is behind is woken to claim them. A poll finds retries and the jobs of crashed
 * processes. Delivery is at least once: a job is recorded as done after its target has run.
 */
export class Dispatcher {
  readonly #inbox: Inbox;
  readonly #owner = processName();
  readonly #lease: number;
  readonly #share: HandlingShare;
  readonly #events: WorkerEvents;
  readonly #workers: ReadonlyMap<string, Worker>;
  readonly #groups: readonly Group[];
  readonly #leases: Leases;
  readonly #polls: PeriodicTask;
  #subscription: Disposable | undefined;

  constructor({ inbox, targets, events, lease = 5_000, interval = 500, maxBytes, share }: DispatcherOptions) {
    this.#inbox = inbox;
    this.#events = events;
    this.#lease = lease;
    this.#share = share ?? new HandlingShare();
    this.#polls = new PeriodicTask(interval, () => this.#poll());
    const owner = this.#owner;
    const leases = new Leases({ inbox, owner, lease, events });
    this.#leases = leases;
    const shared = new ClaimedBytes(maxBytes);
    // Polls wake the workers in this order.
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
          // Attempts of a group may wait long for many receivers; other targets do not wait for their bytes.
          bytes: target.group === undefined ? shared : new ClaimedBytes(maxBytes),
          share: this.#share,
          events,
          onQuarantinedEnded: () => this.#polls.request(),
        }),
      ]),
    );
    this.#groups = targets.flatMap(({ name, group }) => {
      const worker = this.#workers.get(name);
      if (group === undefined || worker === undefined) return [];
      group.onReady(() => worker.wake());
      return [{ group, worker, after: '' }];
    });
  }

  start(): void {
    this.#subscription = this.#inbox.onWork?.(() => this.#polls.request());
    this.#leases.start();
    this.#polls.start();
  }

  /** Tells the worker of a target that a job was added. */
  wake(target: string): void {
    const { worker, group } = this.#workerOf(target) ?? {};
    group?.note(target);
    worker?.wake();
  }

  #workerOf(target: string): { readonly worker: Worker; readonly group?: TargetGroup } | undefined {
    const worker = this.#workers.get(target);
    return worker === undefined
      ? this.#groups.find(({ group }) => target.startsWith(group.prefix))
      : { worker };
  }

  /** Stores a delivery as `Inbox.append` does. Its jobs start without a claim if their workers keep up. */
  append(delivery: NewDelivery): Promise<Appended> {
    if (delivery.jobs.length > 0) return this.appendAll([delivery]).then(appendedOnly);
    // Without jobs nothing is reserved, and the request takes 28 us instead of 29 to 33.
    this.#share.acknowledged();
    return this.#inbox.append(delivery);
  }

  /** Stores deliveries as `Inbox.appendAll` does, and starts their jobs as `append` does. */
  async appendAll(deliveries: readonly NewDelivery[]): ReturnType<Inbox['appendAll']> {
    const reserved = deliveries.map((delivery) => {
      this.#share.acknowledged();
      return this.#reserve(delivery);
    });
    try {
      const handOvers = reserved.map((slots) =>
        slots.size === 0 ? undefined : { targets: [...slots.keys()], owner: this.#owner, lease: this.#lease },
      );
      const results = await this.#inbox.appendAll(deliveries, handOvers);
      for (const [i, { jobs }] of deliveries.entries()) {
        const result = results[i];
        if (result === undefined || result instanceof Error) continue;
        for (const job of result.jobs) {
          reserved[i]?.get(job.target)?.begin(job);
          reserved[i]?.delete(job.target);
        }
        const claimed = new Set(result.jobs.map(({ target }) => target));
        for (const { target } of jobs) if (!claimed.has(target)) this.wake(target);
      }
      return results;
    } finally {
      for (const slots of reserved) for (const slot of slots.values()) slot.giveUp();
    }
  }

  /** Slots, by target, for those jobs of a delivery that can start as soon as they are stored. */
  #reserve({ event, body, jobs }: NewDelivery): Map<string, Slot> {
    const slots = new Map<string, Slot>();
    // The first attempt uses the values in memory, but this name is stored differently and must be read back.
    if (event?.isWellFormed() === false) return slots;
    for (const { target, orderKey, runAt, priority } of jobs) {
      if (slots.size === MAX_HANDED_OVER) break;
      if (orderKey !== null || runAt !== undefined || priority !== undefined) continue;
      const slot = this.#workerOf(target)?.worker.reserve(body.byteLength, target);
      if (slot !== undefined) slots.set(target, slot);
    }
    return slots;
  }

  /** The share of time that handling may use now; see `HandlingShare`. */
  get share(): number {
    return this.#share.share;
  }

  /** The number of running attempts by target. */
  get running(): ReadonlyMap<string, number> {
    return new Map([...this.#workers].map(([target, { running }]) => [target, running]));
  }

  /** Stops claiming and waits for running attempts; `deadline` aborts them and releases their jobs. */
  async stop(deadline: AbortSignal): Promise<void> {
    // Not awaited: a poll can outlast the deadline while the database hangs.
    void this.#polls.stop();
    this.#subscription?.[Symbol.dispose]();
    await Promise.all([...this.#workers.values()].map((worker) => worker.stop(deadline)));
    this.#leases.stop();
    this.#share[Symbol.dispose]();
  }

  /**
   * Ends all attempts because of an uncaught error. Must be called by the listener for the error, whose async
   * context is still that of the attempt that caused it: that attempt fails, and all others are released.
   */
  async crash(error: unknown): Promise<void> {
    const culprit = Attempt.current;
    void this.#polls.stop();
    await Promise.all([...this.#workers.values()].map((worker) => worker.crash(error, culprit)));
  }

  async #poll(): Promise<void> {
    try {
      await this.#leases.beforeClaim();
      const groups = new Set(this.#groups.map(({ worker }) => worker));
      const single = [...this.#workers].filter(([, worker]) => !groups.has(worker));
      const targets = single.map(([target]) => target);
      const due = new Set(await this.#inbox.due(targets));
      for (const [target, worker] of single) due.has(target) ? worker.wake() : worker.rest();
      for (const each of this.#groups) await this.#scan(each);
      await this.#wakeForQuarantined(targets);
    } catch (error) {
      this.#events.storeFailed(error);
    }
  }

  /** Finds due jobs of a group: examines its next targets with open jobs, and begins again after the last. */
  async #scan(each: Group): Promise<void> {
    const { group, worker, after } = each;
    const { due, last } = await this.#inbox.waiting(group.prefix, { after, limit: SCANNED });
    each.after = last ?? '';
    for (const target of due) group.note(target);
    if (group.isReady) worker.wake();
  }

  /** Lets at most one quarantined job run, so that one that ends the process takes no other with it. */
  async #wakeForQuarantined(targets: readonly string[]): Promise<void> {
    if ([...this.#workers.values()].some(({ hasQuarantined }) => hasQuarantined)) return;
    const due = [...(await this.#inbox.dueQuarantined(targets))];
    for (const { group } of this.#groups) {
      const found = await this.#inbox.waiting(group.prefix, { after: '', limit: SCANNED, quarantined: true });
      due.push(...found.due);
    }
    // Chosen at random, so that a target whose job cannot be claimed yet does not hold up the others.
    const target = due[Math.floor(Math.random() * due.length)];
    if (target !== undefined) this.#workerOf(target)?.worker.wakeForQuarantined(target);
  }
}

/** Most jobs of one delivery that start without a claim. */
const MAX_HANDED_OVER = 512;

/** How many targets of a group a poll examines; each takes two index lookups. */
const SCANNED = 1_000;

/** Longer host names are cut, in characters. */
const MAX_HOST = 64;

/** The name of this process in leases; the random part makes it unique, since containers share the others. */
function processName(): string {
  return `${hostname().slice(0, MAX_HOST)}:${process.pid}:${randomBytes(6).toString('hex')}`;
}
