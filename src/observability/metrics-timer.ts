import type { Measurement, Series, Tag } from './metrics-meter.ts';

/** Measures how often something happened and how long it took. */
export class Timer implements Series {
  readonly tags: readonly Tag[];
  #count = 0;
  #total = 0;
  #max = 0;

  constructor(tags: readonly Tag[]) {
    this.tags = tags;
  }

  /** Takes in one duration in seconds. Ignores what is not a duration. */
  record(seconds: number): void {
    if (!(seconds >= 0 && seconds < Infinity)) return;
    this.#count++;
    this.#total += seconds;
    if (seconds > this.#max) this.#max = seconds;
  }

  /** Times in seconds; the maximum is over the whole life of the process. */
  measure(): readonly Measurement[] {
    return [
      { statistic: 'COUNT', value: this.#count },
      { statistic: 'TOTAL_TIME', value: this.#total },
      { statistic: 'MAX', value: this.#max },
    ];
  }
}
