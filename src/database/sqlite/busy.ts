/** sqlite.org/rescode.html */
const SQLITE_BUSY = 5;
/** How long to wait before a lock is asked for again, in milliseconds. */
const PAUSE = 10;

/** Whether somebody else's lock was in the way. */
export function isBusy(error: unknown): boolean {
  return (error as { readonly errcode?: unknown }).errcode === SQLITE_BUSY;
}

/** Waits for others where SQLite itself does not, for so many milliseconds. Throws as `work` did at last. */
export function retryWhileBusy<T>(patience: number, work: () => T): T {
  const deadline = performance.now() + patience;
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error) || performance.now() > deadline) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE);
    }
  }
}
