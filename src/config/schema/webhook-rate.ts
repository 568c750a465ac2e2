import * as v from 'valibot';
import { countField, wholeField } from './fields.ts';

const RATE = 'must be like "10/s", "100/m", "500/h" or { limit: "10/s", burst: 20 }';
const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 };
/** Without a burst of its own, what the rate allows in this time may begin at once, in milliseconds. */
const BURST_TIME = 100;

const limit = v.pipe(v.string(), v.regex(/^[1-9]\d{0,6}\/[smh]$/));

/** How many attempts may begin. */
export interface Rate {
  readonly perMs: number;
  /** How many may begin at once after a pause. */
  readonly burst: number;
}

/** A rate such as `10/s`; with a burst as an object. */
export const rateField = v.pipe(
  wholeField(v.union([limit, v.strictObject({ limit, burst: v.optional(countField) })]), RATE),
  v.transform((given): Rate => {
    const { limit, burst = undefined } = typeof given === 'string' ? { limit: given } : given;
    const [count = '', unit = ''] = limit.split('/');
    const perMs = Number(count) / (UNITS[unit] ?? 1_000);
    return { perMs, burst: burst ?? Math.max(1, Math.floor(perMs * BURST_TIME)) };
  }),
);
