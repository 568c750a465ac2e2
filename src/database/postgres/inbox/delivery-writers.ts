import { setTimeout as delay } from 'node:timers/promises';
import { StoreUnavailableError } from '../../../core/store-errors.ts';
import { STATEMENT_TIMEOUT } from '../pool/connection.ts';
import type { Server } from '../pool/server.ts';

/** Interval of the polls, in milliseconds. */
const PAUSE = 5;
/** Longer than any transaction of Portico, in milliseconds. */
const TIMEOUT = STATEMENT_TIMEOUT + 1_000;

/**
 * The transactions that may be storing deliveries. An INSERT takes this lock before it takes a `seq`, and releases it only
 * once its rows are visible.
 */
const WRITERS = {
  name: 'delivery-writers',
  text: `
    SELECT virtualtransaction, pid FROM pg_locks
    WHERE locktype = 'relation' AND relation = 'deliveries'::regclass AND mode = 'RowExclusiveLock' AND granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
};

/**
 * Waits for the transactions that were storing deliveries when it was called. After that every `seq` below one that was
 * seen before is visible, or will never be. It takes no lock. Fails with StoreUnavailableError.
 */
export async function awaitEarlierWriters(server: Server): Promise<void> {
  const deadline = performance.now() + TIMEOUT;
  let awaited: ReadonlySet<unknown> | undefined;
  for (;;) {
    const rows = await server.readAlone(WRITERS, []);
    const left = rows.filter(([transaction]) => awaited?.has(transaction) ?? true);
    if (left.length === 0) return;
    if (performance.now() > deadline) throw timedOut(left.map(([, pid]) => pid));
    awaited = new Set(left.map(([transaction]) => transaction));
    await delay(PAUSE);
  }
}

function timedOut(pids: readonly unknown[]): StoreUnavailableError {
  return new StoreUnavailableError(
    `A transaction that may have stored deliveries has been open for ${TIMEOUT / 1_000} s, so their order is not ` +
      `known yet. Wait for it, or end it: process ${pids.join(', ')} in pg_stat_activity`,
  );
}
