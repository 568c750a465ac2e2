import * as v from 'valibot';
import { toggleField, wholeNumberField } from './fields.ts';
import type { Written } from './read-object.ts';
import { forwardSchema } from './webhook-forwards.ts';

const DAY = 86_400_000;
const { url, secrets, timeout, attempts } = forwardSchema.entries;
const allowPrivate = v.optional(toggleField);

export const deadAlertSchema = v.object(
  {
    /** The address that alerts are sent to, as deliveries are forwarded; default none. */
    url: v.optional(url),
    secrets,
    allowPrivate,
    timeout,
    attempts,
    /** Minimum time between two alerts about one target, in milliseconds; default a quarter of an hour. */
    interval: v.optional(
      wholeNumberField(1_000, 31 * DAY, `must be a whole number from 1000 to ${31 * DAY} (milliseconds)`),
      900_000,
    ),
    /** With more dead jobs than this the health check says so; default 0. */
    threshold: v.optional(
      wholeNumberField(0, Number.MAX_SAFE_INTEGER, 'must be a whole number from 0 up'),
      0,
    ),
    /** Whether the health check is DOWN then; default false: a restart would not help. */
    down: v.optional(toggleField, false),
  },
  'must be a URL, or an object',
);

export const alertsSchema = v.object({ dead: v.optional(v.unknown()) }, 'must be an object of alerts');

/** What is done about dead deliveries. */
export type DeadAlertConfig = Written<typeof deadAlertSchema>;

/** What Portico raises the alarm about. */
export interface AlertsConfig {
  readonly dead?: string | DeadAlertConfig;
}
