export interface BackoffOptions {
  /** The longest wait before the second attempt, in milliseconds; it doubles with each attempt. */
  readonly base: number;
  /** The longest wait of all, in milliseconds. */
  readonly cap: number;
}

/**
 * How long to wait after a failed attempt, in milliseconds: exponential with full jitter, so that deliveries that
 * failed together do not come back together. `random` is from 0 to below 1.
 */
export function backoff(attempt: number, { base, cap }: BackoffOptions, random: number): number {
  // No cap is reached later than that, and beyond it numbers end.
  const longest = Math.min(cap, base * 2 ** Math.min(attempt - 1, 50));
  return Math.floor(random * longest);
}
