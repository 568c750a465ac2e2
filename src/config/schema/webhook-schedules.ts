import * as v from 'valibot';
import { isRecord } from '../../core/record.ts';
import { textField, wholeNumberField } from './fields.ts';
import type { Written } from './read-object.ts';

const MINUTE = 60_000;
const MONTH = 2_678_400_000;

export const scheduleSchema = v.object(
  {
    /** When: `minute hour day month weekday`, with seconds in front where there are six fields. */
    cron: v.string('must be a cron expression such as 0 3 * * *'),
    /** The time zone of the expression, such as Europe/Berlin; default UTC. */
    timezone: v.optional(v.string('must be the name of a time zone'), 'UTC'),
    /** The event of its deliveries; default the name of the schedule. */
    event: v.optional(textField(/./, 'must be the name of an event')),
    /** Data for the handler; Portico adds `schedule` and `plannedAt`. */
    data: v.optional(
      v.custom<Readonly<Record<string, unknown>>>(isRecord, 'must be an object of JSON values'),
      {},
    ),
    /** How late a missed delivery may still be stored, in milliseconds; default an hour. */
    grace: v.optional(
      wholeNumberField(MINUTE, MONTH, `must be a whole number from ${MINUTE} to ${MONTH} (milliseconds)`),
      60 * MINUTE,
    ),
  },
  'must be a cron expression, or an object with one as its "cron"',
);

/** A delivery that Portico stores by itself, again and again. */
export type ScheduleConfig = Written<typeof scheduleSchema>;

/** The schedules by name. */
export type SchedulesConfig = Readonly<Record<string, string | ScheduleConfig>>;
