import type { BaseLogger } from 'pino';
import { type Measurement, type Meter, MetricWindow, type Series, type Tag, Timer } from './meters.ts';

interface MetricsOptions {
  /** Maximum number of tag combinations per meter; further ones share one series. Default 1,000. */
  readonly maxSeries?: number;
  /** Receives one warning for each meter that reaches `maxSeries`. */
  readonly log?: Pick<BaseLogger, 'warn'>;
}

type SomeOptions = MeterOptions & Omit<TimerOptions, 'description'> & { readonly tags?: readonly string[] };

interface Declared<S extends Series> {
  readonly meter: Meter;
  readonly table: SeriesTable<S>;
}

/** Counts lookups beyond `maxSeries`, by meter. */
const OVERFLOWS = 'meters.overflow';

/**
 * The registry of all meters, under dotted names with tags. A second declaration of a counter or timer
 * returns the first one, so that modules can share it. Throws MeterError for an invalid name, or a name that
 * another kind of meter has.
 */
export class Metrics implements Disposable {
  readonly window = new MetricWindow();
  readonly #maxSeries: number;
  readonly #log: Pick<BaseLogger, 'warn'> | undefined;
  readonly #counters = new Map<string, Declared<Counter>>();
  readonly #timers = new Map<string, Declared<Timer>>();
  readonly #observed = new Map<string, Declared<Series>>();
  readonly #meters = new Map<string, Meter>();
  readonly #overflowed = new Set<string>();
  #names: readonly string[] | undefined;

  constructor({ maxSeries = 1_000, log }: MetricsOptions = {}) {
    this.#maxSeries = maxSeries;
    this.#log = log;
  }

  /** Declares a counter. With `read` its value, which must never decrease, is kept elsewhere. */
  counter<const Keys extends readonly [string, ...string[]]>(
    name: string,
    options: MeterOptions & WithTags<Keys>,
  ): Tagged<Counter, Keys>;
  counter(name: string, options: ObservedOptions, read: () => number): void;
  counter(name: string, options: MeterOptions): Counter;
  counter(
    name: string,
    options: SomeOptions | ObservedOptions,
    read?: () => number,
  ): Counter | Tagged<Counter, readonly string[]> | undefined {
    if (read !== undefined) {
      this.#observe('counter', name, options as ObservedOptions, read);
      return undefined;
    }
    const declared = this.#declare(this.#counters, 'counter', name, options as SomeOptions);
    return handleOf(declared, (tags) => new Counter(tags));
  }

  /** Declares a timer; its unit is seconds. */
  timer<const Keys extends readonly [string, ...string[]]>(
    name: string,
    options: TimerOptions & WithTags<Keys>,
  ): Tagged<Timer, Keys>;
  timer(name: string, options: TimerOptions): Timer;
  timer(name: string, options: SomeOptions): Timer | Tagged<Timer, readonly string[]> {
    const inSeconds = { ...options, unit: 'seconds' };
    const declared = this.#declare(this.#timers, 'timer', name, inSeconds);
    return handleOf(declared, (tags) => new Timer(tags, this.window, options.buckets));
  }

  /** Declares a gauge, read on each measurement. Gauges with different tags can share a name. */
  gauge(name: string, options: ObservedOptions, read: () => number): void {
    this.#observe('gauge', name, options, read);
  }

  /** The sorted names of all meters; the same array until a meter is added. */
  names(): readonly string[] {
    this.#names ??= [...this.#meters.keys()].sort();
    return this.#names;
  }

  meter(name: string): Meter | undefined {
    return this.#meters.get(name);
  }

  *meters(): Iterable<Meter> {
    for (const name of this.names()) {
      const meter = this.#meters.get(name);
      if (meter !== undefined) yield meter;
    }
  }

  /** Stops the time windows; the meters keep working. */
  [Symbol.dispose](): void {
    this.window[Symbol.dispose]();
  }

  #declare<S extends Series>(
    kind: Map<string, Declared<S>>,
    type: Meter['type'],
    name: string,
    { description, unit, tags: tagKeys = [], buckets }: SomeOptions,
  ): Declared<S> {
    const existing = kind.get(name);
    if (existing?.meter.type === type) {
      if (existing.meter.tagKeys.join() === tagKeys.join()) return existing;
      throw new MeterError(
        `The ${type} ${name} exists with other tags: ${existing.meter.tagKeys.join(', ')}`,
      );
    }
    // Tagged by meter name, so its number of series is bounded.
    const limit = name === OVERFLOWS ? Infinity : this.#maxSeries;
    const table = new SeriesTable<S>(tagKeys, limit, () => this.#overflow(name));
    const meter: Meter = {
      name,
      type,
      description,
      unit,
      tagKeys,
      buckets,
      series: () => table.all(),
    };
    this.#register(meter);
    const declared = { meter, table };
    kind.set(name, declared);
    return declared;
  }

  #observe(
    type: 'counter' | 'gauge',
    name: string,
    { tags: given = {}, ...options }: ObservedOptions,
    read: () => number,
  ): void {
    const { table } = this.#declare(this.#observed, type, name, { ...options, tags: Object.keys(given) });
    const statistic = type === 'counter' ? 'COUNT' : 'VALUE';
    table.addNew(Object.values(given), (tags) => ({
      tags,
      measure: () => [{ statistic, value: reading(read) }],
    }));
  }

  #register(meter: Meter): void {
    const { name, type, unit, tagKeys, buckets } = meter;
    checkNames(name, unit, tagKeys, buckets);
    const taken = this.#meters.get(name);
    if (taken !== undefined) throw new MeterError(`${name} cannot be a ${type}: it is a ${taken.type}`);
    this.#meters.set(name, meter);
    this.#names = undefined;
  }

  /** Counts a lookup beyond `maxSeries`, and reports the first one. */
  #overflow(name: string): void {
    const description = 'Lookups of tag combinations beyond the maximum of a meter, by meter';
    this.counter(OVERFLOWS, { description, tags: ['meter'] })
      .with('meter', name)
      .increment();
    if (this.#overflowed.has(name)) return;
    this.#overflowed.add(name);
    this.#log?.warn({ meter: name, maxSeries: this.#maxSeries }, 'meter has too many series');
  }
}

/** The result of a declaration: the only series of a meter without tags, else the lookup of its series. */
function handleOf<S extends Series>(
  { meter, table }: Declared<S>,
  create: CreateSeries<S>,
): S | Tagged<S, readonly string[]> {
  if (meter.tagKeys.length === 0) return table.find([], create);
  return { with: (...pairs: string[]) => table.find(pairs, create) };
}

/** NaN if the reading fails, so that the other meters are still shown. */
function reading(read: () => number): number {
  try {
    return read();
  } catch {
    return Number.NaN;
  }
}

/** A count that never decreases. */
class Counter implements Series {
  readonly tags: readonly Tag[];
  #count = 0;

  constructor(tags: readonly Tag[]) {
    this.tags = tags;
  }

  get count(): number {
    return this.#count;
  }

  /** Adds `by`, default 1. Ignores values that are not positive and finite. */
  increment(by = 1): void {
    if (by > 0 && by < Infinity) this.#count += by;
  }

  measure(): readonly Measurement[] {
    return [{ statistic: 'COUNT', value: this.#count }];
  }
}

/** The tag value of the overflow series. */
const OVERFLOW = 'overflow';

type CreateSeries<S> = (tags: readonly Tag[]) => S;

/** The series of one meter by tag values: at most `limit`, plus one for the overflow. */
class SeriesTable<S extends Series> {
  readonly #keys: readonly string[];
  readonly #limit: number;
  readonly #onOverflow: () => void;
  readonly #series = new Map<string, S>();

  constructor(keys: readonly string[], limit: number, onOverflow: () => void) {
    this.#keys = keys;
    this.#limit = limit;
    this.#onOverflow = onOverflow;
  }

  /** In order of creation. */
  all(): Iterable<S> {
    return this.#series.values();
  }

  /** The series of these tags, created on first use. Throws MeterError for other tags than the declared ones. */
  find(pairs: readonly string[], create: CreateSeries<S>): S {
    const values = this.#keys.map((key, i) => (pairs[2 * i] === key ? pairs[2 * i + 1] : undefined));
    if (pairs.length !== 2 * values.length || !values.every((value) => value !== undefined)) {
      throw new MeterError(
        `Expected the tags ${this.#keys.join(', ')} in this order, each with its value; got: ${pairs.join(', ')}`,
      );
    }
    const known = this.#series.get(JSON.stringify(values));
    if (known !== undefined) return known;
    if (this.#series.size < this.#limit) return this.#add(values, create);
    this.#onOverflow();
    // A regular series may have these values already.
    const overflow = values.map(() => OVERFLOW);
    return this.#series.get(JSON.stringify(overflow)) ?? this.#add(overflow, create);
  }

  /** Adds a series with these tags, except beyond the limit. Throws MeterError if it exists already. */
  addNew(values: readonly string[], create: CreateSeries<S>): void {
    if (this.#series.has(JSON.stringify(values))) {
      throw new MeterError(`The series with these tags exists already: ${values.join(', ')}`);
    }
    if (this.#series.size < this.#limit) this.#add(values, create);
    else this.#onOverflow();
  }

  #add(values: readonly string[], create: CreateSeries<S>): S {
    const series = create(this.#keys.map((key, i) => ({ key, value: values[i] ?? '' })));
    this.#series.set(JSON.stringify(values), series);
    return series;
  }
}

/** The description of a meter; `unit` is its base unit, such as `bytes`. */
interface MeterOptions {
  readonly description: string;
  readonly unit?: string | undefined;
}

/** The description of a meter whose value is kept elsewhere and read on each measurement. */
interface ObservedOptions extends MeterOptions {
  /** Tags of this series; other series of the meter have the same keys with other values. */
  readonly tags?: Readonly<Record<string, string>>;
}

interface TimerOptions {
  readonly description: string;
  /** Upper bounds of the histogram buckets in seconds, ascending; default none. */
  readonly buckets?: readonly number[] | undefined;
}

/** The tag keys of a meter. Values must come from a small set: a route template, never a URL. */
interface WithTags<Keys extends readonly string[]> {
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
class MeterError extends Error {
  override readonly name = 'MeterError';
  readonly code = 'METER';
}

const NAME = /^[a-z][a-z0-9]*(?:[._][a-z0-9]+)*$/;

const UNIT = /^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$/;

/** Labels that Prometheus reserves. */
const RESERVED = ['le', 'quantile'];

function checkNames(
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
