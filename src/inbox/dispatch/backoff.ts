export interface BackoffOptions {
  /** Maximum wait before the second attempt, in milliseconds; it doubles with each attempt. */
  readonly base: number;
  /** Upper bound of every wait, in milliseconds. */
  readonly cap: number;
}

/**
 * The wait after a failed attempt, in milliseconds: exponential with full jitter, so that deliveries that failed
 * together do not retry together. `random` is from 0 to below 1.
 */
export function backoff(attempt: number, { base, cap }: BackoffOptions, random: number): number {
  // The exponent is bounded: 2 ** 1024 would be Infinity.
  const limit = Math.min(cap, base * 2 ** Math.min(attempt - 1, 50));
  return Math.floor(random * limit);
}
