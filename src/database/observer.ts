/** How often something was read. The engine counts, and tells how long some of these reads took. */
export interface ReadTally {
  /** Counted up by the engine. */
  count: number;
  /** Takes in the duration of a read that was timed, in seconds. */
  timed(seconds: number): void;
}

/**
 * Watches a database at work. It is called where every microsecond counts, so it counts and leaves the
 * rest to whoever looks.
 */
export interface DatabaseObserver {
  /** The tally of an operation such as `user.read`, always the same one. */
  reads(operation: string): ReadTally;
  /** Told of each batch of writes that was committed, or not: how many writes, how many of them failed, and in how many seconds. */
  batch(writes: number, failed: number, seconds: number): void;
}

/** One read in so many is timed: two looks at the clock cost a noticeable part of a short read. */
export const READ_SAMPLE = 64;

/** For whoever does not want to know. */
export const unobserved: DatabaseObserver = {
  reads: () => ({ count: 0, timed() {} }),
  batch() {},
};
