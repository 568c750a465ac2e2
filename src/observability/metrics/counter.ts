import type { Measurement, Series, Tag } from './meter.ts';

/** A count that never decreases. */
export class Counter implements Series {
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
