import type { BaseLogger } from 'pino';
import { Counter } from './counter.ts';
import type { Meter, MeterOptions, Series, Tag, Tagged, TimerOptions, WithTags } from './meter.ts';
import { MeterError } from './meter-error.ts';
import { checkNames } from './names.ts';
import { ObservedMeter, type ObservedOptions } from './observed.ts';
import { SeriesTable } from './series.ts';
import { Timer } from './timer.ts';
import { MetricWindow } from './window.ts';

interface MetricsOptions {
  /** Maximum number of tag combinations per meter; default 1,000. Further ones share one series. */
  readonly maxSeries?: number;
  /** Gets one warning for each meter that reaches `maxSeries`. */
  readonly log?: Pick<BaseLogger, 'warn'>;
}

type SomeOptions = MeterOptions & Omit<TimerOptions, 'description'> & { readonly tags?: readonly string[] };

/** A counter or timer together with its series. */
interface Countable<S extends Series> {
  readonly meter: Meter;
  readonly table: SeriesTable<S>;
}

/** Counts lookups beyond `maxSeries`, by meter. */
const OVERFLOWS = 'meters.overflow';

/**
 * The registry of all meters, under dotted names with tags. Declaring a counter or timer again returns the first one, so
 * that parts can share it. Throws MeterError for an invalid name, or one that another kind of meter uses.
 */
export class Metrics implements Disposable {
  /** The time windows of the maxima. */
  readonly window = new MetricWindow();
  readonly #maxSeries: number;
  readonly #log: Pick<BaseLogger, 'warn'> | undefined;
  readonly #counters = new Map<string, Countable<Counter>>();
  readonly #timers = new Map<string, Countable<Timer>>();
  readonly #observed = new Map<string, ObservedMeter>();
  readonly #meters = new Map<string, Meter>();
  readonly #overflowed = new Set<string>();
  #names: readonly string[] | undefined;

  constructor({ maxSeries = 1_000, log }: MetricsOptions = {}) {
    this.#maxSeries = maxSeries;
    this.#log = log;
  }

  /** A counter. With `read` its value, which must never decrease, is kept elsewhere and read on each measurement. */
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
    const create = (tags: readonly Tag[]) => new Counter(tags);
    return handleOf(this.#declare(this.#counters, 'counter', name, options as SomeOptions, create));
  }

  /** A timer; its unit is seconds. */
  timer<const Keys extends readonly [string, ...string[]]>(
    name: string,
    options: TimerOptions & WithTags<Keys>,
  ): Tagged<Timer, Keys>;
  timer(name: string, options: TimerOptions): Timer;
  timer(name: string, options: SomeOptions): Timer | Tagged<Timer, readonly string[]> {
    const inSeconds = { ...options, unit: 'seconds' };
    const create = (tags: readonly Tag[]) => new Timer(tags, this.window, options.buckets);
    return handleOf(this.#declare(this.#timers, 'timer', name, inSeconds, create));
  }

  /** A gauge, whose value is read on each measurement. Several gauges can share a name with different tags. */
  gauge(name: string, options: ObservedOptions, read: () => number): void {
    this.#observe('gauge', name, options, read);
  }

  /** The sorted names of all meters; the same array until a meter is added. */
  names(): readonly string[] {
    this.#names ??= [...this.#meters.keys()].sort();
    return this.#names;
  }

  /** The meter of that name; undefined when there is none. */
  meter(name: string): Meter | undefined {
    return this.#meters.get(name);
  }

  /** All meters in the order of their names. */
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
    kind: Map<string, Countable<S>>,
    type: 'counter' | 'timer',
    name: string,
    { description, unit, tags: tagKeys = [], buckets }: SomeOptions,
    create: (tags: readonly Tag[]) => S,
  ): Countable<S> {
    const existing = kind.get(name);
    if (existing !== undefined) {
      if (existing.meter.tagKeys.join() === tagKeys.join()) return existing;
      throw new MeterError(
        `The ${type} ${name} exists with other tags: ${existing.meter.tagKeys.join(', ')}`,
      );
    }
    // Tagged by meter name, so its number of series is bounded already.
    const limit = name === OVERFLOWS ? Infinity : this.#maxSeries;
    const table = new SeriesTable(tagKeys, limit, create, () => this.#overflow(name));
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

  #observe(type: 'counter' | 'gauge', name: string, options: ObservedOptions, read: () => number): void {
    let meter = this.#observed.get(name);
    if (meter?.type !== type) {
      meter = new ObservedMeter(type, name, options, this.#maxSeries, () => this.#overflow(name));
      this.#register(meter);
      this.#observed.set(name, meter);
    }
    meter.add(options.tags ?? {}, read);
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
function handleOf<S extends Series>({ meter, table }: Countable<S>): S | Tagged<S, readonly string[]> {
  if (meter.tagKeys.length === 0) return table.find([]);
  return { with: (...pairs: string[]) => table.find(pairs) };
}
