import type { Measurement, Meter, MeterOptions, Series } from './meter.ts';
import { MeterError } from './meter-error.ts';

export interface ObservedOptions extends MeterOptions {
  /** Tags of this series; others of the same name have the same keys with other values. */
  readonly tags?: Readonly<Record<string, string>>;
}

/** The gauges or counters of one name whose values are kept elsewhere and read on each measurement. */
export class ObservedMeter implements Meter {
  readonly type: 'counter' | 'gauge';
  readonly name: string;
  readonly description: string;
  readonly unit: string | undefined;
  readonly tagKeys: readonly string[];
  readonly #limit: number;
  readonly #onOverflow: () => void;
  readonly #series = new Map<string, Series>();

  constructor(
    type: 'counter' | 'gauge',
    name: string,
    options: ObservedOptions,
    limit: number,
    onOverflow: () => void,
  ) {
    this.type = type;
    this.name = name;
    this.description = options.description;
    this.unit = options.unit;
    this.tagKeys = Object.keys(options.tags ?? {});
    this.#limit = limit;
    this.#onOverflow = onOverflow;
  }

  series(): Iterable<Series> {
    return this.#series.values();
  }

  /** Adds a series, or drops it beyond the limit. Throws MeterError for other tag keys, or tags that are taken. */
  add(values: Readonly<Record<string, string>>, read: () => number): void {
    const tags = this.tagKeys.map((key) => ({ key, value: values[key] ?? '' }));
    const id = JSON.stringify(tags.map(({ value }) => value));
    const sameKeys =
      Object.keys(values).length === tags.length && this.tagKeys.every((key) => Object.hasOwn(values, key));
    if (!sameKeys || this.#series.has(id)) {
      throw new MeterError(
        `The ${this.type} ${this.name} with the tags ${JSON.stringify(values)} ${sameKeys ? 'exists already' : `needs the tags ${this.tagKeys.join(', ')}`}`,
      );
    }
    if (this.#series.size >= this.#limit) {
      // Readings cannot be merged, so there is no overflow series.
      this.#onOverflow();
      return;
    }
    const statistic = this.type === 'counter' ? 'COUNT' : 'VALUE';
    this.#series.set(id, {
      tags,
      measure: () => [{ statistic, value: reading(read) }] satisfies Measurement[],
    });
  }
}

/** NaN when the reading fails, so that the other meters are still shown. */
function reading(read: () => number): number {
  try {
    return read();
  } catch {
    return Number.NaN;
  }
}
