import { setTimeout as sleep } from 'node:timers/promises';
import type { Connection } from './pool/connection.ts';

/** The advisory lock that serialises processes that migrate at the same time; an arbitrary number. */
const LOCK = 7_067_842_643;
/** Longer than any wait of a migration, in milliseconds. */
const TIMEOUT = 600_000;
/** Time between two attempts at the lock, in milliseconds. */
const INTERVAL = 50;

/**
 * Runs `work` under the lock of migrations, without a limit of time for its statements. Others that want the lock ask
 * again and again: an index that is built concurrently would wait for a statement that waits for the lock.
 */
export async function withMigrationLock<T>(connection: Connection, work: () => Promise<T>): Promise<T> {
  const set = (values: readonly unknown[]) =>
    connection.run(
      { text: `SELECT set_config('statement_timeout', $1, false), set_config('lock_timeout', $2, false)` },
      values,
    );
  const limits = `SELECT current_setting('statement_timeout'), current_setting('lock_timeout')`;
  const [before = []] = await connection.run({ text: limits }, []);
  await takeLock(connection);
  try {
    await set(['0', String(TIMEOUT)]);
    return await work();
  } finally {
    if (!connection.lost) {
      await set(before);
      await connection.run({ text: `SELECT pg_advisory_unlock(${LOCK})` }, []);
    }
  }
}

async function takeLock(connection: Connection): Promise<void> {
  for (const deadline = performance.now() + TIMEOUT; ; await sleep(INTERVAL)) {
    const [row] = await connection.run({ text: `SELECT pg_try_advisory_lock(${LOCK})` }, []);
    if (row?.[0] === true) return;
    if (performance.now() > deadline) throw new Error('another process is migrating the database');
  }
}
