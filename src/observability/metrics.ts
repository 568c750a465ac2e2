import { Counter } from './metrics-counter.ts';
import { MeterError } from './metrics-error.ts';
import { GaugeMeter, type GaugeOptions } from './metrics-gauge.ts';
import type { Meter, MeterOptions, Series, Tag, Tagged, TaggedMeterOptions } from './metrics-meter.ts';
import { SeriesTable } from './metrics-series.ts';
import { Timer } from './metrics-timer.ts';

export interface MetricsOptions {
  /** How many tag combinations one meter may have; 1,000 when absent. What comes later shares one series. */
  readonly maxSeries?: number;
  /** Called once for each meter that ran into `maxSeries`. */
  readonly onOverflow?: (meter: string, maxSeries: number) => void;
}

type SomeOptions = MeterOptions & { readonly tags?: readonly string[] };

/** A counter or timer together with its series. */
interface Countable<S extends Series> {
  readonly meter: Meter;
  readonly table: SeriesTable<S>;
}

const NAME = /^[a-z][a-z0-9]*(?:[._][a-z0-9]+)*$/;

/**
 * All meters of the process, under dotted names with tags, to be rendered in any format.
 * Declaring a counter or timer a second time gives the first one, so that parts can share it.
 * Throws MeterError for a name that is no name, or that is another kind of meter already.
 */
export class Metrics {
  readonly #maxSeries: number;
  readonly #onOverflow: (meter: string, maxSeries: number) => void;
  readonly #counters = new Map<string, Countable<Counter>>();
  readonly #timers = new Map<string, Countable<Timer>>();
  readonly #gauges = new Map<string, GaugeMeter>();
  readonly #meters = new Map<string, Meter>();
  #names: readonly string[] | undefined;

  constructor({ maxSeries = 1_000, onOverflow = () => {} }: MetricsOptions = {}) {
    this.#maxSeries = maxSeries;
    this.#onOverflow = onOverflow;
  }

  counter<const Keys extends readonly [string, ...string[]]>(
    name: string,
    options: TaggedMeterOptions<Keys>,
  ): Tagged<Counter, Keys>;
  counter(name: string, options: MeterOptions): Counter;
  counter(name: string, options: SomeOptions): Counter | Tagged<Counter, readonly string[]> {
    return handle(this.#declare(this.#counters, 'counter', name, options, (tags) => new Counter(tags)));
  }

  /** A timer; its unit is seconds. */
  timer<const Keys extends readonly [string, ...string[]]>(
    name: string,
    options: TaggedMeterOptions<Keys>,
  ): Tagged<Timer, Keys>;
  timer(name: string, options: MeterOptions): Timer;
  timer(name: string, options: SomeOptions): Timer | Tagged<Timer, readonly string[]> {
    const inSeconds = { ...options, unit: 'seconds' };
    return handle(this.#declare(this.#timers, 'timer', name, inSeconds, (tags) => new Timer(tags)));
  }

  /** A value that is read when somebody looks. Several gauges share a name when their tags differ. */
  gauge(name: string, options: GaugeOptions, read: () => number): void {
    let meter = this.#gauges.get(name);
    if (meter === undefined) {
      meter = new GaugeMeter(name, options, this.#maxSeries, this.#overflowOf(name));
      this.#register(meter);
      this.#gauges.set(name, meter);
    }
    meter.add(options.tags ?? {}, read);
  }

  /** The names of all meters, sorted; the same array until a meter is added. */
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

  #declare<S extends Series>(
    kind: Map<string, Countable<S>>,
    type: 'counter' | 'timer',
    name: string,
    { description, unit, tags: tagKeys = [] }: SomeOptions,
    create: (tags: readonly Tag[]) => S,
  ): Countable<S> {
    const existing = kind.get(name);
    if (existing !== undefined) {
      if (existing.meter.tagKeys.join() === tagKeys.join()) return existing;
      throw new MeterError(
        `The ${type} ${name} exists with other tags: ${existing.meter.tagKeys.join(', ')}`,
      );
    }
    const table = new SeriesTable(tagKeys, this.#maxSeries, create, this.#overflowOf(name));
    const meter: Meter = {
      name,
      type,
      description,
      unit,
      tagKeys,
      get overflowed() {
        return table.overflowed;
      },
      series: () => table.all(),
    };
    this.#register(meter);
    const declared = { meter, table };
    kind.set(name, declared);
    return declared;
  }

  #register(meter: Meter): void {
    const { name, type } = meter;
    if (!NAME.test(name)) {
      throw new MeterError(`${JSON.stringify(name)} is no meter name: use lower-case words joined by dots`);
    }
    const taken = this.#meters.get(name);
    if (taken !== undefined) throw new MeterError(`${name} cannot be a ${type}: it is a ${taken.type}`);
    this.#meters.set(name, meter);
    this.#names = undefined;
  }

  #overflowOf(name: string): () => void {
    return () => this.#onOverflow(name, this.#maxSeries);
  }
}

/** What a declaration returns: the only series of a meter without tags, else the way to its series. */
function handle<S extends Series>({ meter, table }: Countable<S>): S | Tagged<S, readonly string[]> {
  if (meter.tagKeys.length === 0) return table.find([]);
  return { with: (...pairs: string[]) => table.find(pairs) };
}
