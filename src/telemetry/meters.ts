/** Eight buckets for each power of two microseconds: a width of at most an eighth of the value. */
const BUCKETS = 232;
const MAX_MICROSECONDS = 2 ** 31 - 1;

/** Counts durations finely enough for percentiles over the interval between two copies of the counts. */
export class LatencyHistogram {
  readonly counts = new Float64Array(BUCKETS);

  /** Records a duration without allocating. Ignores NaN and negative values. */
  record(milliseconds: number): void {
    if (!(milliseconds >= 0)) return;
    const bucket = bucketOf(Math.min(milliseconds * 1_000, MAX_MICROSECONDS));
    this.counts[bucket] = (this.counts[bucket] ?? 0) + 1;
  }
}

/** A percentile (0 to 1) in milliseconds of the durations between two copies; NaN if there are none. */
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

/** The middle of a bucket, in microseconds. */
function middleOf(bucket: number): number {
  if (bucket < 8) return bucket + 0.5;
  const width = 2 ** ((bucket >> 3) - 1);
  return (8 + (bucket & 7) + 0.5) * width;
}

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

/** Length of a window, in milliseconds. */
const WINDOW = 60_000;

/** Numbers the windows of maxima, so that hot paths read no clock. Does not keep the process alive. */
export class MetricWindow implements Disposable {
  #number = 0;
  readonly #timer = setInterval(() => this.advance(), WINDOW).unref();

  get number(): number {
    return this.#number;
  }

  advance(): void {
    this.#number++;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}

/** The maximum over this window and the two before it, so that old outliers are forgotten. */
class RecentMax {
  readonly #window: MetricWindow;
  #seen: number;
  #current = 0;
  #last = 0;
  #secondLast = 0;

  constructor(window: MetricWindow) {
    this.#window = window;
    this.#seen = window.number;
  }

  /** Records a value, 0 or more. */
  record(value: number): void {
    if (this.#seen !== this.#window.number) this.#advance();
    if (value > this.#current) this.#current = value;
  }

  /** 0 without values. */
  get value(): number {
    if (this.#seen !== this.#window.number) this.#advance();
    return Math.max(this.#current, this.#last, this.#secondLast);
  }

  #advance(): void {
    const steps = this.#window.number - this.#seen;
    this.#seen = this.#window.number;
    this.#secondLast = steps === 1 ? this.#last : steps === 2 ? this.#current : 0;
    this.#last = steps === 1 ? this.#current : 0;
    this.#current = 0;
  }
}

export type Statistic = 'COUNT' | 'TOTAL_TIME' | 'MAX' | 'VALUE';

/** A number of a series; times are in seconds. */
export interface Measurement {
  readonly statistic: Statistic;
  readonly value: number;
}

/** A dimension of a meter, such as `method`, with one of its values. */
export interface Tag {
  readonly key: string;
  readonly value: string;
}

/** A combination of tags of a meter, with its measurements. */
export interface Series {
  /** The tags; the same array for each call. */
  readonly tags: readonly Tag[];
  measure(): readonly Measurement[];
  /** The number of values in each bucket of its meter, not cumulative. */
  readonly bucketCounts?: ArrayLike<number> | undefined;
}

export interface Meter {
  /** Lower-case words joined by dots, such as `http.server.requests`. */
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'timer';
  readonly description: string;
  /** The base unit of its values, such as `bytes` or `seconds`; undefined for plain numbers. */
  readonly unit: string | undefined;
  /** The tag keys of every series, in this order. */
  readonly tagKeys: readonly string[];
  /** The upper bounds of a timer's buckets in seconds, ascending; undefined if it has none. */
  readonly buckets?: readonly number[] | undefined;
  /** The series in order of creation; series are never removed. */
  series(): Iterable<Series>;
}

/** Longer than a scrape takes to read all gauges, in milliseconds. */
const ONE_SCRAPE = 50;

/** Caches a reading for `maxAge` milliseconds, for several gauges that show parts of it. */
export function sharedReading<T>(read: () => T, maxAge = ONE_SCRAPE): () => T {
  let last: { readonly value: T; readonly at: number } | undefined;
  return () => {
    const now = performance.now();
    if (last === undefined || now - last.at > maxAge) last = { value: read(), at: now };
    return last.value;
  };
}
