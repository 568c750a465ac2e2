import type { Inbox } from '../inbox.ts';
import { PeriodicTask } from './periodic-task.ts';

export interface HeartbeatOptions {
  readonly inbox: Pick<Inbox, 'recordHeartbeat' | 'expireOrphans'>;
  /** The targets that this process runs. */
  readonly targets: readonly string[];
  /** Jobs of a target without a heartbeat for this long expire, in milliseconds; 0: never. */
  readonly grace: number;
  /** Interval of the heartbeats in milliseconds; default a third of `grace`, at most a minute. */
  readonly interval?: number;
  /** Called with the number of expired jobs per target. */
  onExpired(jobs: ReadonlyMap<string, number>): void;
  onError(error: unknown): void;
}

/** Jobs expired per write, so that no other write waits long behind it. */
const BATCH = 500;
const MAX_INTERVAL = 60_000;

/**
 * Records which targets this process runs, and expires the jobs of targets that no process runs: a handler that was
 * removed from the configuration would leave its jobs open for ever. Expired jobs are dead and can be replayed.
 * A process expires nothing before it has seen an unbroken series of heartbeats for all of `grace`. Otherwise a start,
 * or a database outage, would make the other processes look gone.
 */
export class Heartbeat {
  readonly #options: HeartbeatOptions;
  readonly #interval: number;
  /** Runs `beat` at the interval. */
  readonly task: PeriodicTask;
  /** The unbroken series of own heartbeats: the first and the last one, in milliseconds since the epoch. */
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
    const error = `no process has run this handler or forward address for ${grace / 1_000} s; put it back and replay`;
    const jobs = new Map<string, number>();
    for (let full = true; full && !this.task.stopped; ) {
      const expired = await inbox.expireOrphans(now - grace, BATCH, error, now);
      for (const target of expired) jobs.set(target, (jobs.get(target) ?? 0) + 1);
      full = expired.length === BATCH;
    }
    return jobs;
  }
}
