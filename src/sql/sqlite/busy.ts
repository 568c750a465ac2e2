/** sqlite.org/rescode.html */
const SQLITE_BUSY = 5;
/** Delay before a lock is requested again, in milliseconds. */
const PAUSE = 10;

/** Whether another connection holds the lock. */
export function isBusy(error: unknown): boolean {
  return (error as { readonly errcode?: unknown }).errcode === SQLITE_BUSY;
}

/** Retries `work` while it is busy, for statements that ignore SQLite's own busy timeout. Rethrows its last error. */
export function retryWhileBusy<T>(timeoutMs: number, work: () => T): T {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error) || performance.now() > deadline) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE);
    }
  }
}
