import type { Series, Tag } from './meter.ts';
import { MeterError } from './meter-error.ts';

/** The tag value of the overflow series. */
const OVERFLOW = 'overflow';

/** A node of a trie over tag values, which finds a series without building a key. */
interface Branch<S> {
  readonly children: Map<string, Branch<S>>;
  series: S | undefined;
}

/** The series of one meter by tag values: at most `limit`, and one for the overflow. */
export class SeriesTable<S extends Series> {
  readonly #keys: readonly string[];
  readonly #limit: number;
  readonly #create: (tags: readonly Tag[]) => S;
  readonly #onOverflow: () => void;
  readonly #root: Branch<S> = { children: new Map(), series: undefined };
  readonly #all: S[] = [];
  #overflow: S | undefined;

  constructor(
    keys: readonly string[],
    limit: number,
    create: (tags: readonly Tag[]) => S,
    onOverflow: () => void,
  ) {
    this.#keys = keys;
    this.#limit = limit;
    this.#create = create;
    this.#onOverflow = onOverflow;
  }

  /** In order of creation. */
  all(): readonly S[] {
    return this.#all;
  }

  /** The series of these tags, created on first use. Throws MeterError for other tags than the declared ones. */
  find(pairs: readonly string[]): S {
    const keys = this.#keys;
    let branch: Branch<S> | undefined = this.#root;
    for (let i = 0; i < keys.length; i++) {
      const value = pairs[2 * i + 1];
      if (pairs[2 * i] !== keys[i] || value === undefined) throw this.#mismatch(pairs);
      branch = branch?.children.get(value);
    }
    if (pairs.length !== 2 * keys.length) throw this.#mismatch(pairs);
    return branch?.series ?? this.#add(pairs);
  }

  #add(pairs: readonly string[]): S {
    if (this.#all.length >= this.#limit) {
      this.#onOverflow();
      this.#overflow ??= this.#addOverflow();
      return this.#overflow;
    }
    let branch = this.#root;
    const tags = this.#keys.map((key, i) => ({ key, value: pairs[2 * i + 1] ?? '' }));
    for (const { value } of tags) {
      let child = branch.children.get(value);
      if (child === undefined) {
        child = { children: new Map(), series: undefined };
        branch.children.set(value, child);
      }
      branch = child;
    }
    branch.series = this.#create(tags);
    this.#all.push(branch.series);
    return branch.series;
  }

  #addOverflow(): S {
    const tags = this.#keys.map((key) => ({ key, value: OVERFLOW }));
    // Reuses a regular series with these tags, because tags must be unique.
    let branch: Branch<S> | undefined = this.#root;
    for (const { value } of tags) branch = branch?.children.get(value);
    if (branch?.series !== undefined) return branch.series;
    const overflow = this.#create(tags);
    this.#all.push(overflow);
    return overflow;
  }

  #mismatch(pairs: readonly string[]): MeterError {
    return new MeterError(
      `Expected the tags ${this.#keys.join(', ')} in this order, each with its value; got: ${pairs.join(', ')}`,
    );
  }
}
