import { READ_SAMPLE, type ReadTally } from '../observer.ts';

/** Counts a read, and now and then times it. */
export async function counted<T>(tally: ReadTally, read: () => Promise<T>): Promise<T> {
  if (tally.count++ % READ_SAMPLE !== 0) return read();
  const began = performance.now();
  const found = await read();
  tally.timed((performance.now() - began) / 1_000);
  return found;
}
