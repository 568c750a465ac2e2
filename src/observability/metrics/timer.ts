import type { Measurement, Series, Tag } from './meter.ts';
import { type MetricWindow, RecentMax } from './window.ts';

/** Counts events and their durations. */
export class Timer implements Series {
  readonly tags: readonly Tag[];
  readonly bucketCounts: Float64Array | undefined;
  readonly #bounds: readonly number[];
  readonly #max: RecentMax;
  #count = 0;
  #total = 0;

  /** `bounds` are the upper bounds of its buckets, in seconds. */
  constructor(tags: readonly Tag[], window: MetricWindow, bounds: readonly number[] = []) {
    this.tags = tags;
    this.#bounds = bounds;
    this.#max = new RecentMax(window);
    this.bucketCounts = bounds.length === 0 ? undefined : new Float64Array(bounds.length + 1);
  }

  /** Records a duration in seconds. Ignores negative and non-finite values. */
  record(seconds: number): void {
    if (!(seconds >= 0 && seconds < Infinity)) return;
    this.#count++;
    this.#total += seconds;
    this.#max.record(seconds);
    const counts = this.bucketCounts;
    if (counts === undefined) return;
    let bucket = 0;
    while (seconds > (this.#bounds[bucket] ?? Infinity)) bucket++;
    counts[bucket] = (counts[bucket] ?? 0) + 1;
  }

  /** Times in seconds; the maximum is over the last two to three minutes. */
  measure(): readonly Measurement[] {
    return [
      { statistic: 'COUNT', value: this.#count },
      { statistic: 'TOTAL_TIME', value: this.#total },
      { statistic: 'MAX', value: this.#max.value },
    ];
  }
}
