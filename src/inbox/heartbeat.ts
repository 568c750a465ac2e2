import type { Inbox } from './inbox.ts';
import { Rounds } from './rounds.ts';

export interface AttendanceOptions {
  readonly inbox: Pick<Inbox, 'attend' | 'abandon'>;
  /** What this process runs. */
  readonly targets: readonly string[];
  /** What no process has run for so long is given up, in milliseconds; 0: never. */
  readonly grace: number;
  /** How often processes tell each other what they run, in milliseconds; default a third of `grace`, a minute at most. */
  readonly interval?: number;
  /** Told how many jobs of each target were given up. */
  onAbandoned(jobs: ReadonlyMap<string, number>): void;
  onError(error: unknown): void;
}

/** Given up in one write, so that nobody waits long behind it. */
const BATCH = 500;
const LONGEST_INTERVAL = 60_000;

/**
 * Tells the other processes of a database what this one runs, and gives up what none of them does: a handler that
 * was taken out of the configuration would leave its jobs open for ever. They are dead then, and can be replayed.
 * A process that was not there to see the others gives nothing up before it has watched for all of `grace`, so that
 * neither a start, nor a store that was away, makes others look gone.
 */
export class Attendance {
  readonly #options: AttendanceOptions;
  readonly #interval: number;
  readonly #rounds: Rounds;
  /** From when on nothing of what the others said was missed, and when they were heard last. */
  #watching: { readonly since: number; readonly last: number } | undefined;

  constructor(options: AttendanceOptions) {
    this.#options = options;
    const { grace, interval } = options;
    this.#interval =
      interval ?? (grace === 0 ? LONGEST_INTERVAL : Math.min(LONGEST_INTERVAL, Math.ceil(grace / 3)));
    this.#rounds = new Rounds(this.#interval, () => this.look(Date.now()));
  }

  start(): void {
    this.#rounds.start();
  }

  /** Ends after the write that is under way. */
  stop(): Promise<void> {
    return this.#rounds.stop();
  }

  /** Says what this process runs, and gives up what nobody does; `now` is in milliseconds since the epoch. */
  async look(now: number): Promise<void> {
    const { inbox, targets, grace, onAbandoned, onError } = this.#options;
    const before = this.#watching;
    this.#watching = undefined;
    try {
      await inbox.attend(targets, now);
      const unbroken = before !== undefined && now >= before.last && now - before.last <= 2 * this.#interval;
      const since = unbroken ? before.since : now;
      this.#watching = { since, last: now };
      if (grace === 0 || now - since < grace) return;
      const jobs = await this.#abandon(now);
      if (jobs.size > 0) onAbandoned(jobs);
    } catch (error) {
      onError(error);
    }
  }

  async #abandon(now: number): Promise<ReadonlyMap<string, number>> {
    const { inbox, grace } = this.#options;
    const error = `no process has had this handler or forward address for ${grace / 1_000} s; put it back and replay`;
    const jobs = new Map<string, number>();
    for (let full = true; full && !this.#rounds.stopped; ) {
      const ended = await inbox.abandon(now - grace, BATCH, error, now);
      for (const target of ended) jobs.set(target, (jobs.get(target) ?? 0) + 1);
      full = ended.length === BATCH;
    }
    return jobs;
  }
}
