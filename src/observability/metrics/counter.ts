import type { Measurement, Series, Tag } from './meter.ts';

/** Counts what happened; never goes down. */
export class Counter implements Series {
  readonly tags: readonly Tag[];
  #count = 0;

  constructor(tags: readonly Tag[]) {
    this.tags = tags;
  }

  get count(): number {
    return this.#count;
  }

  /** Adds `by`, 1 when absent. Ignores what is not a number or would take the counter down. */
  increment(by = 1): void {
    if (by > 0 && by < Infinity) this.#count += by;
  }

  measure(): readonly Measurement[] {
    return [{ statistic: 'COUNT', value: this.#count }];
  }
}
