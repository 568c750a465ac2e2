import type { Refusal } from './scheme.ts';

/** Default of the maximum clock difference, in seconds. */
export const DEFAULT_TOLERANCE = 300;

/**
 * Why a timestamp, whole seconds since the epoch in digits, is invalid at `now` (milliseconds); undefined when it is valid.
 * `tolerance` is the maximum difference in seconds, inclusive; 0 accepts every time.
 */
export function timestampFault(
  text: string | undefined,
  tolerance: number,
  now: number,
): Refusal | undefined {
  if (text === undefined) return 'no-timestamp';
  // Only the canonical form, because parsers differ in what else they accept.
  if (!/^(?:0|[1-9]\d{0,14})$/.test(text)) return 'malformed-timestamp';
  if (tolerance === 0) return undefined;
  const age = Math.floor(now / 1000) - Number(text);
  if (age > tolerance) return 'too-old';
  return age < -tolerance ? 'too-new' : undefined;
}
