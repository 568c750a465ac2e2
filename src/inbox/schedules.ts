import { Cron } from 'croner';
import { readObject, sluggedOf } from '../config/schema/fields.ts';
import { quote } from '../core/text.ts';
import { scheduleSchema } from './config.ts';
import { DeliveryIds, type NewDelivery, OWN_SOURCES } from './delivery.ts';
import type { Appended, Inbox } from './inbox.ts';
import type { JobPlan } from './job-plan.ts';

/** The planned times of a schedule, in milliseconds since the epoch. */
interface Timetable {
  /** The last planned time at or before `now`; undefined if there is none. */
  last(now: number): number | undefined;
  /** The first planned time after `now`; undefined if there is none. */
  next(now: number): number | undefined;
}

/** A delivery that is stored at recurring times. */
interface Schedule {
  readonly name: string;
  readonly event: string;
  /** The handler's data, besides the schedule's name and the planned time. */
  readonly data: Readonly<Record<string, unknown>>;
  readonly timetable: Timetable;
  /** Identifies the timetable; a schedule with a changed one starts afresh. */
  readonly plan: string;
  /** A missed delivery is still stored up to this late, in milliseconds. */
  readonly grace: number;
}

/**
 * The delivery of a schedule for a planned time. Both form its dedup key, so a second one is a duplicate even
 * if a clock that was set back moved the checkpoint.
 */
function scheduledDelivery(
  { name, event, data }: Schedule,
  planned: number,
  plan: JobPlan,
  { id, receivedAt }: Pick<NewDelivery, 'id' | 'receivedAt'>,
): NewDelivery {
  const plannedAt = new Date(planned).toISOString();
  const body = { event, data: { ...data, schedule: name, plannedAt } };
  const facts = { id, source: OWN_SOURCES.schedule, event, dataPointer: '/data', receivedAt };
  return {
    ...facts,
    contentType: 'application/json',
    body: Buffer.from(JSON.stringify(body)),
    dedupKey: `${name}@${plannedAt}`,
    jobs: plan(facts, body),
  };
}

interface SchedulerOptions {
  readonly inbox: Pick<Inbox, 'checkpoints'>;
  readonly schedules: readonly Schedule[];
  readonly plan: JobPlan;
  /** Called with each delivery that this process has stored. */
  onAppended(delivery: NewDelivery, appended: Appended): void;
  /** Called if the last planned time was missed by more than the schedule's grace. */
  onMissed(schedule: string, planned: number): void;
  onError(error: unknown): void;
}

/** Maximum time between two readings of the clock, in milliseconds: it may be set forward. */
const MAX_WAIT = 30_000;
/** Pause after a failure of the store, in milliseconds. */
const RETRY = 1_000;

/**
 * Stores the deliveries of schedules at their planned times, once for all processes: the schedule's
 * checkpoint moves in the commit that stores the delivery. If times were missed because no process ran, only
 * the last one is made up for, within the grace. A new schedule, or one with a changed timetable, starts with
 * its next planned time.
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

  /** Resolves once no write is in progress. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#running;
  }

  /** Stores due deliveries; resolves to the ms until the next one. Rejects as the store does. */
  async run(): Promise<number> {
    const { inbox, schedules } = this.#options;
    const now = await inbox.checkpoints.clock();
    const checkpoints = await inbox.checkpoints.read(schedules.map(checkpointOf));
    let wait = MAX_WAIT;
    for (const schedule of schedules) {
      await this.#runOne(schedule, checkpoints.get(checkpointOf(schedule)) ?? 0, now);
      const next = schedule.timetable.next(now);
      if (next !== undefined) wait = Math.min(wait, next - now);
    }
    return wait;
  }

  async #runOne(schedule: Schedule, from: number, now: number): Promise<void> {
    const { inbox, plan, onAppended, onMissed } = this.#options;
    const name = checkpointOf(schedule);
    // New, or the clock was set back; the dedup key recognizes deliveries that were stored already.
    if (from === 0 || from > now) {
      await inbox.checkpoints.move({ name, from, to: now });
      return;
    }
    const planned = schedule.timetable.last(now);
    if (planned === undefined || planned <= from) return;
    const move = { name, from, to: planned };
    if (now - planned > schedule.grace) {
      if (await inbox.checkpoints.move(move)) onMissed(schedule.name, planned);
      return;
    }
    const delivery = scheduledDelivery(schedule, planned, plan, { id: this.#ids.next(now), receivedAt: now });
    const appended = await inbox.checkpoints.append(move, delivery);
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

function checkpointOf({ name, plan }: Schedule): string {
  return `schedule:${name}:${plan}`;
}

/** Five fields, six with seconds first, or a name such as @daily. */
const CRON = /^(?:@[a-z]+|\S+(?:\s+\S+){4,5})$/;

/** Planned times are whole seconds. */
const SECOND = 1_000;

/** The timetable of a cron expression in a time zone, or its problem, worded as the end of a sentence. */
export function cronTimetable(cron: string, timezone: string): Timetable | { readonly problem: string } {
  const text = cron.trim();
  if (!CRON.test(text)) return { problem: 'must be a cron expression of five or six fields' };
  try {
    const times = new Cron(text, { timezone, paused: true });
    if (times.nextRun() === null) return { problem: 'never matches a time' };
    return {
      last(now) {
        // `previousRuns` excludes the reference time itself.
        const end = (Math.floor(now / SECOND) + 1) * SECOND;
        return times.previousRuns(1, new Date(end))[0]?.getTime();
      },
      next: (now) => times.nextRun(new Date(now))?.getTime(),
    };
  } catch (error) {
    return { problem: `is not a cron expression: ${reasonOf(error)}` };
  }
}

function reasonOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replace(/^CronPattern: /, '');
}

/** Whether Node knows a time zone. */
function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/**
 * Reads `webhook.schedules`, called `path` in messages: by name, a cron expression or an object with one.
 * Appends one line per problem to `problems`; with problems the result is incomplete.
 */
export function readSchedules(value: unknown, path: string, problems: string[]): readonly Schedule[] {
  return sluggedOf({ value, path }, 'schedules', problems).flatMap(({ name, ...entry }) => {
    const isText = typeof entry.value === 'string';
    const given = isText ? { ...entry, value: { cron: entry.value } } : entry;
    const read = readObject(scheduleSchema, given, problems);
    if (read === undefined) return [];
    const { cron, timezone, event = name, data, grace } = read;
    if (!isTimeZone(timezone)) {
      problems.push(`${entry.path}.timezone is not a time zone: ${quote(timezone)}`);
      return [];
    }
    const timetable = cronTimetable(cron, timezone);
    if ('problem' in timetable) {
      problems.push(`${isText ? entry.path : `${entry.path}.cron`} ${timetable.problem}`);
      return [];
    }
    return { name, event, data, grace, timetable, plan: `${cron.trim()} ${timezone}` };
  });
}
