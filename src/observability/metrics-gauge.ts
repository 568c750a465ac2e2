import { MeterError } from './metrics-error.ts';
import type { Measurement, Meter, MeterOptions, Series } from './metrics-meter.ts';

export interface GaugeOptions extends MeterOptions {
  /** Tells this gauge from others of the same name, which have the same tags with other values. */
  readonly tags?: Readonly<Record<string, string>>;
}

/** The gauges of one name. Each is read when somebody looks, and only then. */
export class GaugeMeter implements Meter {
  readonly type = 'gauge';
  readonly name: string;
  readonly description: string;
  readonly unit: string | undefined;
  readonly tagKeys: readonly string[];
  readonly #limit: number;
  readonly #onOverflow: () => void;
  readonly #gauges = new Map<string, Series>();
  #overflowed = false;

  constructor(name: string, options: GaugeOptions, limit: number, onOverflow: () => void) {
    this.name = name;
    this.description = options.description;
    this.unit = options.unit;
    this.tagKeys = Object.keys(options.tags ?? {});
    this.#limit = limit;
    this.#onOverflow = onOverflow;
  }

  get overflowed(): boolean {
    return this.#overflowed;
  }

  series(): Iterable<Series> {
    return this.#gauges.values();
  }

  /** Adds a gauge. Throws MeterError when its tags are not the meter's, or are taken. Drops it past the cap. */
  add(values: Readonly<Record<string, string>>, read: () => number): void {
    const tags = this.tagKeys.map((key) => ({ key, value: values[key] ?? '' }));
    const id = JSON.stringify(tags.map(({ value }) => value));
    const sameKeys =
      Object.keys(values).length === tags.length && this.tagKeys.every((key) => Object.hasOwn(values, key));
    if (!sameKeys || this.#gauges.has(id)) {
      throw new MeterError(
        `The gauge ${this.name} with the tags ${JSON.stringify(values)} ${sameKeys ? 'exists already' : `needs the tags ${this.tagKeys.join(', ')}`}`,
      );
    }
    if (this.#gauges.size >= this.#limit) {
      // A reading cannot be added to another one, so there is no series for the overflow.
      if (!this.#overflowed) this.#onOverflow();
      this.#overflowed = true;
      return;
    }
    this.#gauges.set(id, { tags, measure: () => measure(read) });
  }
}

/** A reading that fails is no number, and no reason to lose the other meters. */
function measure(read: () => number): readonly Measurement[] {
  let value: number;
  try {
    value = read();
  } catch {
    value = Number.NaN;
  }
  return [{ statistic: 'VALUE', value }];
}
