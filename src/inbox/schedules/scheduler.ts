import type { NewDelivery, NewJob } from '../delivery.ts';
import { DeliveryIds } from '../delivery-ids.ts';
import type { Appended, Inbox } from '../inbox.ts';
import type { DeliveryFacts } from '../rules/received-delivery.ts';
import type { Schedule } from './schedule.ts';
import { scheduledDelivery } from './scheduled-delivery.ts';

export interface SchedulerOptions {
  readonly inbox: Pick<Inbox, 'marks'>;
  readonly schedules: readonly Schedule[];
  /** Decides which jobs a delivery gets. */
  plan(delivery: DeliveryFacts, body: unknown): readonly NewJob[];
  /** Called with each delivery that this process has stored. */
  onAppended(delivery: NewDelivery, appended: Appended): void;
  /** Called when the last planned time was missed by more than the grace of its schedule. */
  onMissed(schedule: string, planned: number): void;
  onError(error: unknown): void;
}

/** The clock is read at least this often, in milliseconds: it may be set forwards. */
const MAX_WAIT = 30_000;
/** Wait after a failure of the store, in milliseconds. */
const RETRY = 1_000;

/**
 * Stores the deliveries of schedules at their planned times, each once for all processes on the database: the mark of a
 * schedule moves in the commit that stores its delivery. Of the times that nobody was there for, the last one is made up
 * for within the grace. A schedule that is new, or has a new timetable, begins with its next planned time.
 */
export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #ids = new DeliveryIds();
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #stopped = false;

  constructor(options: SchedulerOptions) {
    this.#options = options;
  }

  start(): void {
    if (this.#options.schedules.length > 0) this.#tick();
  }

  /** Resolves once nothing is being stored. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#running;
  }

  /** Stores what is due; resolves to the time until the next planned one, in milliseconds. Rejects as the store does. */
  async run(): Promise<number> {
    const { inbox, schedules } = this.#options;
    const now = await inbox.marks.clock();
    const marks = await inbox.marks.read(schedules.map(markOf));
    let wait = MAX_WAIT;
    for (const schedule of schedules) {
      await this.#runOne(schedule, marks.get(markOf(schedule)) ?? 0, now);
      const next = schedule.timetable.next(now);
      if (next !== undefined) wait = Math.min(wait, next - now);
    }
    return wait;
  }

  async #runOne(schedule: Schedule, from: number, now: number): Promise<void> {
    const { inbox, plan, onAppended, onMissed } = this.#options;
    const name = markOf(schedule);
    // New, or the clock was set back: what was stored already is known by its dedup key.
    if (from === 0 || from > now) {
      await inbox.marks.move({ name, from, to: now });
      return;
    }
    const planned = schedule.timetable.last(now);
    if (planned === undefined || planned <= from) return;
    const move = { name, from, to: planned };
    if (now - planned > schedule.grace) {
      if (await inbox.marks.move(move)) onMissed(schedule.name, planned);
      return;
    }
    const delivery = scheduledDelivery(schedule, planned, plan, { id: this.#ids.next(now), receivedAt: now });
    const appended = await inbox.marks.append(move, delivery);
    if (appended !== undefined && appended !== 'duplicate') onAppended(delivery, appended);
  }

  #tick(): void {
    this.#running = this.run()
      .catch((error: unknown) => {
        this.#options.onError(error);
        return RETRY;
      })
      .then((wait) => {
        if (!this.#stopped) this.#timer = setTimeout(() => this.#tick(), Math.max(1, wait));
      });
  }
}

function markOf({ name, plan }: Schedule): string {
  return `schedule:${name}:${plan}`;
}
