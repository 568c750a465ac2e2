/** The reads of one operation: the engine counts them all and times a sample. */
export interface ReadTally {
  /** Incremented by `counted`. */
  count: number;
  /** Records the duration of a timed read, in seconds. */
  timed(seconds: number): void;
}

/** Receives counts and durations from a database. It is called on the hot path, so it only counts. */
export interface DatabaseObserver {
  /** Makes the tally of an operation such as `user.read`; called once for each. */
  reads(operation: string): ReadTally;
  /** Called after each commit, or failed commit, with its number of writes, how many of them failed, and its seconds. */
  batch(writes: number, failed: number, seconds: number): void;
}

/** One read in this many is timed, because reading the clock twice costs a noticeable part of a short read. */
export const READ_SAMPLE = 64;

/** An observer that ignores everything. */
export const unobserved: DatabaseObserver = {
  reads: () => ({ count: 0, timed() {} }),
  batch() {},
};

/** Counts a read, synchronous or not, and times one in `READ_SAMPLE`. */
export function counted<T>(tally: ReadTally, read: () => T): T {
  if (tally.count++ % READ_SAMPLE !== 0) return read();
  const began = performance.now();
  const record = () => tally.timed((performance.now() - began) / 1_000);
  const found = read();
  if (found instanceof Promise) found.then(record, () => {});
  else record();
  return found;
}
