import type { Refusal } from './scheme.ts';

/** How old or how far ahead a request may be, in seconds, when nobody says. */
export const DEFAULT_TOLERANCE = 300;

/**
 * Why a timestamp, whole seconds since the epoch in digits, does not hold at `now` (milliseconds); undefined when
 * it does. `tolerance` counts both ways and belongs to what is allowed; 0 allows every time.
 */
export function timestampFault(
  text: string | undefined,
  tolerance: number,
  now: number,
): Refusal | undefined {
  if (text === undefined) return 'no-timestamp';
  // Only one spelling of a number: parsers differ in what else they read as one.
  if (!/^(?:0|[1-9]\d{0,14})$/.test(text)) return 'malformed-timestamp';
  if (tolerance === 0) return undefined;
  const age = Math.floor(now / 1000) - Number(text);
  if (age > tolerance) return 'too-old';
  return age < -tolerance ? 'too-new' : undefined;
}
