/** Milliseconds per unit, the largest first. */
const UNITS = [
  ['w', 604_800_000],
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const;

const AGO = /^(\d{1,9})([smhdw])$/;
const ISO =
  /^(\d{4}-\d{2}-)(\d{2})(?:T(\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)(Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)?)?$/;

/** The syntax of a moment, for messages. */
export const MOMENT = 'an ISO 8601 time like 2026-01-31T14:00Z, or how long ago like 15m, 2h or 3d';

/**
 * Parses an ISO 8601 time to milliseconds since the epoch; a time without a zone is in `zone`, by default the local one.
 * Returns undefined for anything else.
 */
export function parseIsoTime(text: string, zone = ''): number | undefined {
  const [, month = '', day = '', time = '00:00', given = zone] = ISO.exec(text) ?? [];
  const moment = Date.parse(`${month}${day}T${time}${given}`);
  // Date.parse accepts 31 February as a day in March.
  const real = new Date(Date.parse(`${month}${day}T00:00Z`)).getUTCDate() === Number(day);
  return Number.isNaN(moment) || !real ? undefined : moment;
}

/**
 * Parses a moment to milliseconds since the epoch: ISO 8601, in local time without a zone, or a duration before `now`
 * in s, m, h, d or w. Returns undefined for anything else.
 */
export function parseMoment(text: string, now: number): number | undefined {
  const [, count, unit] = AGO.exec(text) ?? [];
  for (const [name, length] of UNITS) if (name === unit) return now - Number(count) * length;
  return parseIsoTime(text);
}

/** Formats a duration in whole units of the largest that fits, such as `15m`; `parseMoment` reads it. `ms` is in milliseconds. */
export function formatSpan(ms: number): string {
  const [unit, length] = UNITS.find(([, length]) => ms >= length) ?? (['s', 1_000] as const);
  return `${Math.max(0, Math.floor(ms / length))}${unit}`;
}
