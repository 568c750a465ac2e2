/** The kind of a measurement. */
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

/** A meter as exporters see it. */
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

/** The description of a meter; `unit` is its base unit, such as `bytes`. */
export interface MeterOptions {
  readonly description: string;
  readonly unit?: string | undefined;
}

/** The description of a meter whose value is kept elsewhere and read on each measurement. */
export interface ObservedOptions extends MeterOptions {
  /** Tags of this series; other series of the meter have the same keys with other values. */
  readonly tags?: Readonly<Record<string, string>>;
}

/** The description of a timer, which measures seconds. */
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
type TagPairs<Keys extends readonly string[]> = Keys extends readonly [
  infer Key extends string,
  ...infer Rest extends readonly string[],
]
  ? [key: Key, value: string, ...rest: TagPairs<Rest>]
  : [];

/** A meter with tags. Hot paths should keep the result of `with`. */
export interface Tagged<S extends Series, Keys extends readonly string[]> {
  /** The series with these tag values; the overflow series once the meter is full. */
  with(...pairs: TagPairs<Keys>): S;
}

/** A bug: a meter is declared twice in different ways, or used against its declaration. */
export class MeterError extends Error {
  override readonly name = 'MeterError';
  readonly code = 'METER';
}

const NAME = /^[a-z][a-z0-9]*(?:[._][a-z0-9]+)*$/;
const UNIT = /^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$/;
/** Labels that Prometheus reserves. */
const RESERVED = ['le', 'quantile'];

/** Checks the names of a meter. Throws MeterError. */
export function checkNames(
  name: string,
  unit: string | undefined,
  tagKeys: readonly string[],
  buckets: readonly number[] = [],
): void {
  const quoted = JSON.stringify;
  if (!NAME.test(name))
    throw new MeterError(`${quoted(name)} is not a valid meter name: use lower-case words joined by dots`);
  if (unit !== undefined && !UNIT.test(unit))
    throw new MeterError(`${quoted(unit)} is not a valid unit of ${name}: use a plain word like bytes`);
  const wrong = tagKeys.find((key) => !NAME.test(key) || RESERVED.includes(key));
  if (wrong !== undefined)
    throw new MeterError(`${quoted(wrong)} cannot be a tag of ${name}: use another word`);
  if (new Set(tagKeys.map((key) => key.replaceAll('.', '_'))).size < tagKeys.length)
    throw new MeterError(`Two tags of ${name} have the same name: ${tagKeys.join(', ')}`);
  if (!buckets.every((bound, i) => bound > (buckets[i - 1] ?? 0) && bound < Infinity))
    throw new MeterError(`The buckets of ${name} must be seconds in ascending order: ${buckets.join(', ')}`);
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
