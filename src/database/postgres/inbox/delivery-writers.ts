import { setTimeout as delay } from 'node:timers/promises';
import { StoreUnavailableError } from '../../../core/store-errors.ts';
import { STATEMENT_TIMEOUT } from '../pool/connection.ts';
import type { Server } from '../pool/server.ts';

/** From one look at those that are waited for to the next, in milliseconds. */
const PAUSE = 5;
/** Longer than any transaction of ours takes, in milliseconds. */
const PATIENCE = STATEMENT_TIMEOUT + 1_000;

/**
 * The transactions that may have stored deliveries. Every INSERT takes this lock before it takes a `seq`, and gives it
 * back only when what it stored can be seen.
 */
const WRITERS = {
  name: 'delivery-writers',
  text: `
    SELECT virtualtransaction, pid FROM pg_locks
    WHERE locktype = 'relation' AND relation = 'deliveries'::regclass AND mode = 'RowExclusiveLock' AND granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
};

/**
 * Waits until the transactions have ended that were storing deliveries when it was called, and for none that began
 * later. After it whatever took a `seq` below one that was seen before can be seen too, or never comes. Nobody waits
 * for the one who waits. Fails with StoreUnavailableError.
 */
export async function earlierWriters(server: Server): Promise<void> {
  const deadline = performance.now() + PATIENCE;
  let awaited: ReadonlySet<unknown> | undefined;
  for (;;) {
    const rows = await server.readAlone(WRITERS, []);
    const left = rows.filter(([transaction]) => awaited?.has(transaction) ?? true);
    if (left.length === 0) return;
    if (performance.now() > deadline) throw heldUp(left.map(([, pid]) => pid));
    awaited = new Set(left.map(([transaction]) => transaction));
    await delay(PAUSE);
  }
}

function heldUp(pids: readonly unknown[]): StoreUnavailableError {
  return new StoreUnavailableError(
    `A transaction that may have stored deliveries has not ended for ${PATIENCE / 1_000} s, so their order is not ` +
      `known yet. Wait for it, or end it: process ${pids.join(', ')} in pg_stat_activity`,
  );
}
