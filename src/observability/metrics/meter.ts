/** What a measurement says about its series. */
export type Statistic = 'COUNT' | 'TOTAL_TIME' | 'MAX' | 'VALUE';

export interface Measurement {
  readonly statistic: Statistic;
  readonly value: number;
}

export interface Tag {
  readonly key: string;
  readonly value: string;
}

/** One tag combination of a meter, with what it measured up to now. */
export interface Series {
  /** The same array each time. */
  readonly tags: readonly Tag[];
  measure(): readonly Measurement[];
  /** How many values fell into each bucket of its meter, without those of the buckets below. */
  readonly bucketCounts?: ArrayLike<number> | undefined;
}

/** A named thing that is measured, as the renderings of the metrics see it. */
export interface Meter {
  /** Lower-case words joined by dots, such as `http.server.requests`. */
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'timer';
  readonly description: string;
  /** The base unit of its values, such as `bytes` or `seconds`; undefined for plain numbers. */
  readonly unit: string | undefined;
  /** The tags that every one of its series has, in this order. */
  readonly tagKeys: readonly string[];
  /** The upper bounds of a timer's buckets in seconds, ascending; absent when it has none. */
  readonly buckets?: readonly number[] | undefined;
  /** Whether it ran into its cap of series, so that its overflow series holds a mixture. */
  readonly overflowed: boolean;
  /** Its series in the order in which they appeared; none ever goes away. */
  series(): Iterable<Series>;
}

export interface MeterOptions {
  readonly description: string;
  readonly unit?: string | undefined;
}

export interface TimerOptions {
  readonly description: string;
  /** Upper bounds in seconds, ascending: how many values are at most that large is counted for each. None when absent. */
  readonly buckets?: readonly number[] | undefined;
}

/** The tags of every series. Their values come from a small set: a route's template, never a URL. */
export interface WithTags<Keys extends readonly string[]> {
  readonly tags: Keys;
}

/** The arguments of `with`: every tag of the meter and its value, in the declared order. */
export type TagPairs<Keys extends readonly string[]> = Keys extends readonly [
  infer Key extends string,
  ...infer Rest extends readonly string[],
]
  ? [key: Key, value: string, ...rest: TagPairs<Rest>]
  : [];

/** A meter with tags. What `with` returns can be kept, so that a hot path only counts. */
export interface Tagged<S extends Series, Keys extends readonly string[]> {
  /** The series with these tag values; the overflow series once the meter has too many. */
  with(...pairs: TagPairs<Keys>): S;
}
