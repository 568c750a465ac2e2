/** The kind of a measurement. */
export type Statistic = 'COUNT' | 'TOTAL_TIME' | 'MAX' | 'VALUE';

/** One number of a series; times in seconds. */
export interface Measurement {
  readonly statistic: Statistic;
  readonly value: number;
}

/** A dimension of a meter, such as `method`, with one of its values. */
export interface Tag {
  readonly key: string;
  readonly value: string;
}

/** One tag combination of a meter and its measurements. */
export interface Series {
  /** The same array for each call. */
  readonly tags: readonly Tag[];
  measure(): readonly Measurement[];
  /** The number of values in each bucket of its meter, not cumulative. */
  readonly bucketCounts?: ArrayLike<number> | undefined;
}

/** A meter as renderers see it. */
export interface Meter {
  /** Lower-case words joined by dots, such as `http.server.requests`. */
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'timer';
  readonly description: string;
  /** The base unit of its values, such as `bytes` or `seconds`; undefined for plain numbers. */
  readonly unit: string | undefined;
  /** The tag keys of every series, in this order. */
  readonly tagKeys: readonly string[];
  /** The upper bounds of a timer's buckets in seconds, ascending; absent when it has none. */
  readonly buckets?: readonly number[] | undefined;
  /** Its series in order of creation; none is ever removed. */
  series(): Iterable<Series>;
}

/** What a meter measures; `unit` is its base unit, such as `bytes`. */
export interface MeterOptions {
  readonly description: string;
  readonly unit?: string | undefined;
}

/** What a meter measures whose value is kept elsewhere and read on each measurement. */
export interface ObservedOptions extends MeterOptions {
  /** Tags of this series; others of the same name have the same keys with other values. */
  readonly tags?: Readonly<Record<string, string>>;
}

/** What a timer measures, in seconds. */
export interface TimerOptions {
  readonly description: string;
  /** Upper bounds of the histogram buckets in seconds, ascending; default none. */
  readonly buckets?: readonly number[] | undefined;
}

/** The tag keys of a meter. Values must come from a small set: a route template, never a URL. */
export interface WithTags<Keys extends readonly string[]> {
  readonly tags: Keys;
}

/** The arguments of `with`: each tag key with its value, in declared order. */
export type TagPairs<Keys extends readonly string[]> = Keys extends readonly [
  infer Key extends string,
  ...infer Rest extends readonly string[],
]
  ? [key: Key, value: string, ...rest: TagPairs<Rest>]
  : [];

/** A meter with tags. Hot paths keep the result of `with`. */
export interface Tagged<S extends Series, Keys extends readonly string[]> {
  /** The series with these tag values; the overflow series once the meter is full. */
  with(...pairs: TagPairs<Keys>): S;
}
