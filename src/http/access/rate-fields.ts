import type { Quota, RateRule } from './client-rate.ts';

/** The name of the policy in the fields. */
const POLICY = '"client"';

/** Writes the fields of a rate, RateLimit and RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers-10). */
export function rateFields({ limit, windowMs, burst }: RateRule) {
  const sustained = `${POLICY};q=${limit};w=${seconds(windowMs)}`;
  const policy = burst === limit ? sustained : `${sustained}, "burst";q=${burst}`;
  return ({ remaining, reset }: Quota): Readonly<Record<string, string>> => ({
    'ratelimit-policy': policy,
    ratelimit: `${POLICY};r=${remaining};t=${seconds(reset)}`,
  });
}

/** In whole seconds, and one at least where it is any time at all. */
export function seconds(ms: number): number {
  return Math.ceil(Math.max(0, ms) / 1_000 - 1e-9);
}
