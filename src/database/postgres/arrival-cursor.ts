/** Maximum number of missing ids; beyond it the oldest are given up. */
const MAX_MISSING = 10_000;
/**
 * Time until a missing id is given up, in milliseconds. A create that takes longer than six seconds is not
 * acknowledged, so every acknowledged id becomes visible in time.
 */
const TIMEOUT = 30_000;

/**
 * Finds new ids where ids are assigned in order but become visible in another one (a sequence and its transactions). A
 * missing id below the last one may still be committed, or was rolled back: each poll asks for it again until it times
 * out. Each id is new once.
 */
export class ArrivalCursor {
  #last: number;
  /** Missing ids, and since when, in milliseconds; the oldest first. */
  readonly #missing = new Map<number, number>();

  constructor(last: number, missing: Iterable<number>, now: number) {
    this.#last = last;
    for (const id of missing) this.#missing.set(id, now);
    this.#bound();
  }

  /** The highest id so far. */
  get last(): number {
    return this.#last;
  }

  /** Ids below it that may still become visible. */
  get missing(): readonly number[] {
    return [...this.#missing.keys()];
  }

  /**
   * Takes the ids that a poll has found, in order: those of `missing` that are visible now, and the next visible ones
   * above `last`. `began` is when the poll began and `now` when it ended, in milliseconds. Returns the new ids.
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
    // This poll did not find them either.
    for (const [id, since] of this.#missing) {
      if (began - since <= TIMEOUT) break;
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
