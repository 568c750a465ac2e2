/** Statistics of the reads of one operation: all are counted, a sample is timed. */
export interface ReadTally {
  /** Incremented by `counted`. */
  count: number;
  /** Records the duration of a timed read, in seconds. */
  timed(seconds: number): void;
}

/** Receives counts and durations from a database. It runs on the hot path, so it must only count. */
export interface DatabaseObserver {
  /** Creates the tally of an operation such as `user.read`; called once per operation. */
  reads(operation: string): ReadTally;
  /**
   * Called after each successful or failed commit with its number of writes, how many of them failed, and its
   * seconds.
   */
  batch(writes: number, failed: number, seconds: number): void;
}

/** One in this many reads is timed: reading the clock twice is a noticeable part of a short read. */
export const READ_SAMPLE = 64;

/** An observer that does nothing. */
export const unobserved: DatabaseObserver = {
  reads: () => ({ count: 0, timed() {} }),
  batch() {},
};

/** Counts a read, synchronous or asynchronous, and times one in `READ_SAMPLE`. */
export function counted<T>(tally: ReadTally, read: () => T): T {
  if (tally.count++ % READ_SAMPLE !== 0) return read();
  const began = performance.now();
  const record = () => tally.timed((performance.now() - began) / 1_000);
  const found = read();
  if (found instanceof Promise) found.then(record, () => {});
  else record();
  return found;
}
