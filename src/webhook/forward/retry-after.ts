/** Maximum wait that a receiver can ask for, in milliseconds. */
const LONGEST = 24 * 60 * 60 * 1_000;

/** Parses Retry-After (RFC 9110 10.2.3), seconds or a date, to milliseconds from `now`; undefined when it is neither. */
export function retryAfterMs(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined;
  const wait = /^\d{1,10}$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - now;
  return Number.isNaN(wait) ? undefined : Math.min(LONGEST, Math.max(0, wait));
}
