/** Eight buckets for each power of two of microseconds, up to 18 minutes: a bucket is at most an eighth wide. */
const BUCKETS = 232;
const MAX_MICROSECONDS = 2 ** 31 - 1;

/** Counts durations finely enough for percentiles over any span: readers subtract two copies of the counts. */
export class LatencyHistogram {
  readonly counts = new Float64Array(BUCKETS);

  /** Allocates nothing. Ignores what is no duration. */
  record(milliseconds: number): void {
    if (!(milliseconds >= 0)) return;
    const bucket = bucketOf(Math.min(milliseconds * 1_000, MAX_MICROSECONDS));
    this.counts[bucket] = (this.counts[bucket] ?? 0) + 1;
  }
}

/**
 * A percentile in milliseconds of what was counted between two copies of the counts; NaN when that is nothing. `share`
 * is from 0 to 1.
 */
export function percentileBetween(before: Float64Array, after: Float64Array, share: number): number {
  let total = 0;
  for (let i = 0; i < after.length; i++) total += (after[i] ?? 0) - (before[i] ?? 0);
  if (total === 0) return Number.NaN;
  let left = Math.max(1, Math.ceil(total * share));
  for (let i = 0; i < after.length; i++) {
    left -= (after[i] ?? 0) - (before[i] ?? 0);
    if (left <= 0) return middleOf(i) / 1_000;
  }
  return Number.NaN;
}

function bucketOf(microseconds: number): number {
  const whole = microseconds | 0;
  if (whole < 8) return whole;
  const exponent = 31 - Math.clz32(whole);
  return (exponent - 2) * 8 + ((whole >>> (exponent - 3)) & 7);
}

/** In microseconds. */
function middleOf(bucket: number): number {
  if (bucket < 8) return bucket + 0.5;
  const width = 2 ** ((bucket >> 3) - 1);
  return (8 + (bucket & 7) + 0.5) * width;
}
