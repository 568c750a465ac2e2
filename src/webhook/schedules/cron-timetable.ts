import { Cron } from 'croner';
import type { Timetable } from '../../inbox/schedules/schedule.ts';

/** Five fields, or six with seconds in front, or a name such as @daily. */
const CRON = /^(?:@[a-z]+|\S+(?:\s+\S+){4,5})$/;

/** The planned times are whole seconds. */
const SECOND = 1_000;

/** The times of a cron expression in a time zone; what is wrong with it, as the end of a sentence. */
export function cronTimetable(cron: string, timezone: string): Timetable | { readonly problem: string } {
  const text = cron.trim();
  if (!CRON.test(text)) return { problem: 'must be a cron expression of five or six fields' };
  try {
    const times = new Cron(text, { timezone, paused: true });
    if (times.nextRun() === null) return { problem: 'never has a time to run' };
    return {
      last(now) {
        // The reference itself is left out.
        const end = (Math.floor(now / SECOND) + 1) * SECOND;
        return times.previousRuns(1, new Date(end))[0]?.getTime();
      },
      next: (now) => times.nextRun(new Date(now))?.getTime(),
    };
  } catch (error) {
    return { problem: `is no cron expression: ${reasonOf(error)}` };
  }
}

function reasonOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replace(/^CronPattern: /, '');
}

/** Whether this Node knows a time zone. */
export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}
