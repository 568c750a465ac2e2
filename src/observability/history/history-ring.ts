import { type HistoryColumn, historyColumn } from './history-column.ts';
import type { HistorySource } from './history-source.ts';

/** The last points of all columns at one resolution, in typed arrays that never grow. */
export class HistoryRing {
  readonly capacity: number;
  /** Ticks per point. */
  readonly #every: number;
  readonly #columns: readonly HistoryColumn[];
  readonly #times: Float64Array;
  readonly #values: readonly Float32Array[];
  #ticks = 0;
  #next = 0;
  #length = 0;
  #since: number;

  constructor(sources: readonly HistorySource[], every: number, capacity: number, now: number) {
    this.capacity = capacity;
    this.#every = every;
    this.#columns = sources.map(historyColumn);
    this.#times = new Float64Array(capacity);
    this.#values = sources.map(() => new Float32Array(capacity));
    this.#since = now;
  }

  /** The size of its arrays, in bytes. */
  get bytes(): number {
    return this.#values.reduce((sum, { byteLength }) => sum + byteLength, this.#times.byteLength);
  }

  /** Takes a reading; true when it has made a point. `now` is in milliseconds since the epoch. */
  tick(now: number): boolean {
    for (const column of this.#columns) column.tick();
    if (++this.#ticks % this.#every !== 0) return false;
    const seconds = Math.max(0.001, (now - this.#since) / 1_000);
    this.#since = now;
    this.#times[this.#next] = now;
    for (const [i, column] of this.#columns.entries()) {
      const values = this.#values[i];
      if (values !== undefined) values[this.#next] = column.take(seconds);
    }
    this.#next = (this.#next + 1) % this.capacity;
    this.#length = Math.min(this.#length + 1, this.capacity);
    return true;
  }

  /** The times of its points after a moment, oldest first, in milliseconds since the epoch. */
  times(after: number): readonly number[] {
    return this.#indices(after).map((i) => this.#times[i] ?? 0);
  }

  /** The values of a column at these times; null for gaps. */
  column(number: number, after: number): readonly (number | null)[] {
    const values = this.#values[number];
    return this.#indices(after).map((i) => finite(values?.[i]));
  }

  #indices(after: number): readonly number[] {
    const all = Array.from(
      { length: this.#length },
      (_, i) => (this.#next - this.#length + i + this.capacity) % this.capacity,
    );
    return all.filter((i) => (this.#times[i] ?? 0) > after);
  }
}

/** Seven digits are what a Float32 holds. */
function finite(value: number | undefined): number | null {
  return value === undefined || !Number.isFinite(value) ? null : Number(value.toPrecision(7));
}
