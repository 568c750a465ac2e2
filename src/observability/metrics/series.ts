import type { Series, Tag } from './meter.ts';
import { MeterError } from './meter-error.ts';

/** The tag value of the overflow series. */
const OVERFLOW = 'overflow';

export type CreateSeries<S> = (tags: readonly Tag[]) => S;

/** The series of one meter by tag values: at most `limit`, and one for the overflow. */
export class SeriesTable<S extends Series> {
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

  /**
   * Adds the series of these tag values; drops it beyond the limit, as readings cannot be merged. Throws MeterError when
   * there is one already.
   */
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
