import { sluggedOf } from '../../config/schema/given.ts';
import { readObject } from '../../config/schema/read-object.ts';
import { scheduleSchema } from '../../config/schema/webhook-schedules.ts';
import { quote } from '../../core/quote.ts';
import type { Schedule } from '../../inbox/schedules/schedule.ts';
import { cronTimetable, isTimeZone } from './cron-timetable.ts';

/**
 * Reads `webhook.schedules`, which messages call `path`: by name a cron expression, or an object with one. Appends one
 * line per problem to `problems`; with problems the result is incomplete.
 */
export function readSchedules(value: unknown, path: string, problems: string[]): readonly Schedule[] {
  return sluggedOf({ value, path }, 'schedules', problems).flatMap(({ name, ...entry }) => {
    const isText = typeof entry.value === 'string';
    const given = isText ? { ...entry, value: { cron: entry.value } } : entry;
    const read = readObject(scheduleSchema, given, problems);
    if (read === undefined) return [];
    const { cron, timezone, event = name, data, grace } = read;
    if (!isTimeZone(timezone)) {
      problems.push(`${entry.path}.timezone is no time zone: ${quote(timezone)}`);
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
