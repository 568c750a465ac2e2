import type { BaseLogger } from 'pino';
import {
  Counter,
  type CreateSeries,
  checkNames,
  type Meter,
  MeterError,
  type MeterOptions,
  MetricWindow,
  type ObservedOptions,
  type Series,
  SeriesTable,
  type Tagged,
  Timer,
  type TimerOptions,
  type WithTags,
} from './meters.ts';

interface MetricsOptions {
  /** Maximum number of tag combinations per meter; further ones share one series. Default 1,000. */
  readonly maxSeries?: number;
  /** Receives one warning for each meter that reaches `maxSeries`. */
  readonly log?: Pick<BaseLogger, 'warn'>;
}

type SomeOptions = MeterOptions & Omit<TimerOptions, 'description'> & { readonly tags?: readonly string[] };

/** A meter together with its series. */
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
  /** The time windows of the maxima. */
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

  /**
   * Declares a counter. With `read`, its value is kept elsewhere, must never decrease, and is read on each
   * measurement.
   */
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

  /**
   * Declares a gauge, whose value is read on each measurement. Several gauges can share a name with different
   * tags.
   */
  gauge(name: string, options: ObservedOptions, read: () => number): void {
    this.#observe('gauge', name, options, read);
  }

  /** The sorted names of all meters; the same array until a meter is added. */
  names(): readonly string[] {
    this.#names ??= [...this.#meters.keys()].sort();
    return this.#names;
  }

  /** The meter of that name; undefined if there is none. */
  meter(name: string): Meter | undefined {
    return this.#meters.get(name);
  }

  /** All meters, sorted by name. */
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
