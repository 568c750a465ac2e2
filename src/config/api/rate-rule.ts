import type { RateRule } from '../../http/access/client-rate.ts';

const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 };

/** The rule of a rate such as `100/s`; a burst of 0 is as many as the rate has in its unit. */
export function rateRule(rate: string, burst: number): RateRule {
  const [count = '', unit = ''] = rate.split('/');
  const limit = Number(count);
  return { limit, windowMs: UNITS[unit] ?? 1_000, burst: burst === 0 ? limit : burst };
}
