/** More ids than this are not waited for at the same time; those that were missed first are given up. */
const MAX_MISSING = 10_000;
/**
 * For how long an id that was passed over is waited for, in milliseconds. A create that is not answered in six seconds
 * is not acknowledged any more, so whatever is acknowledged comes in time.
 */
const PATIENCE = 30_000;

/**
 * Follows ids that are given in order and become visible in another one. An id below the last one that is not there
 * may be under way, or never come: it is asked for again for a while. Each id is new once.
 */
export class ArrivalCursor {
  #last: number;
  /** Ids that were passed over, and when, in milliseconds; the oldest first. */
  readonly #missing = new Map<number, number>();

  constructor(last: number, missing: Iterable<number>, now: number) {
    this.#last = last;
    for (const id of missing) this.#missing.set(id, now);
    this.#bound();
  }

  /** The highest id that was seen. */
  get last(): number {
    return this.#last;
  }

  /** Ids below it that may still come. */
  get missing(): readonly number[] {
    return [...this.#missing.keys()];
  }

  /**
   * Takes in what a look has found: those of `missing` that have come, and ids above `last` with none left out between
   * them; in order. `began` is when the look began and `now` when it ended, in milliseconds. Returns those that are new.
   */
  advance(found: readonly number[], began: number, now: number): ReadonlySet<number> {
    const fresh = new Set<number>();
    const passed: number[] = [];
    for (const id of found) {
      if (id > this.#last) {
        for (let gap = Math.max(this.#last + 1, id - MAX_MISSING); gap < id; gap++) passed.push(gap);
        this.#last = id;
        fresh.add(id);
      } else if (this.#missing.delete(id)) fresh.add(id);
    }
    // This look did not find them either.
    for (const [id, since] of this.#missing) {
      if (began - since <= PATIENCE) break;
      this.#missing.delete(id);
    }
    for (const id of passed) this.#missing.set(id, now);
    this.#bound();
    return fresh;
  }

  #bound(): void {
    for (const id of this.#missing.keys()) {
      if (this.#missing.size <= MAX_MISSING) return;
      this.#missing.delete(id);
    }
  }
}
