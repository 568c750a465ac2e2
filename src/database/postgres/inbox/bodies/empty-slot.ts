import { sqlState } from '../../pool/faults.ts';
import type { Server } from '../../pool/server.ts';
import type { ClosedSlot } from './slots.ts';

/** A slot is emptied when at most so many deliveries are left in it; their bodies are copied into their rows. */
export const FEW = 10_000;
/** Maximum number of bodies that a step copies, and their size in bytes, unless the first one is larger. */
const WINDOW = 200;
const MAX_BYTES = 16 * 1024 * 1024;
/** How long the emptying waits for a lock on the slot, and how long it may take, in milliseconds: others wait behind it. */
const LOCK_TIMEOUT = 50;
const TIMEOUT = 300;
/** How long the counting may take before it is left to a later step: until a vacuum it passes over what was removed. */
const COUNT_TIMEOUT = 1_000;
const QUERY_CANCELED = '57014';

/** Counts the deliveries that are left, up to one more than few, and records since when there are none. */
const LEFT = {
  text: `
    WITH found AS (
      SELECT count(*) AS n FROM (
        SELECT FROM deliveries WHERE seq BETWEEN $2 AND $3 AND slot = $1 LIMIT ${FEW + 1}) AS left_there),
    noted AS (
      UPDATE body_slots SET unused_since = CASE n WHEN 0 THEN pg_current_xact_id() END FROM found
      WHERE slot = $1 AND (unused_since IS NULL) = (n = 0))
    SELECT n FROM found`,
};

const copyFrom = (slot: number) => ({
  text: `
    WITH stays AS MATERIALIZED (
      SELECT seq, body_length FROM deliveries WHERE seq BETWEEN $1 AND $2 AND slot = ${slot}
      ORDER BY seq LIMIT ${WINDOW} FOR NO KEY UPDATE SKIP LOCKED),
    sized AS (
      SELECT seq, sum(body_length) OVER earlier AS total, row_number() OVER earlier AS nth
      FROM stays WINDOW earlier AS (ORDER BY seq)),
    taken AS MATERIALIZED (SELECT seq FROM sized WHERE nth = 1 OR total <= ${MAX_BYTES}),
    copied AS (
      UPDATE deliveries SET body = b.body, body_length = NULL, slot = NULL
      FROM delivery_bodies_${slot} AS b
      WHERE deliveries.seq = ANY (ARRAY(SELECT seq FROM taken)) AND b.seq = deliveries.seq AND b.slot = ${slot}
      RETURNING 1)
    SELECT count(*) FROM copied`,
});

/**
 * Whether a snapshot may still see a delivery with a body in the slot. TRUNCATE empties a table for older snapshots too,
 * such as that of a dump that has yet to read it.
 */
const seenByOthers = (slot: number) => `
  SELECT FROM pg_stat_activity, body_slots
  WHERE slot = ${slot} AND pid <> pg_backend_pid() AND (datname = current_database() OR datname IS NULL)
    AND backend_xmin IS NOT NULL AND age(backend_xmin) >= age(unused_since::xid)`;

/** The first or last number in a slot, by its index. */
const edge = (which: 'min' | 'max', slot: number) =>
  `SELECT ${which}(seq) FROM delivery_bodies_${slot} WHERE slot = ${slot}`;

/**
 * Empties a slot unless a delivery has its body there. An append that has begun before the slot was closed may still add to
 * it: it holds the lock, or finds the slot empty, or is found here. No other rule, clock or count decides.
 */
export const emptying = (slot: number) => ({
  text: `
    DO $$
    BEGIN
      PERFORM FROM retention_cursors WHERE rule = 'bodies' FOR UPDATE NOWAIT;
      LOCK TABLE delivery_bodies_${slot} IN ACCESS EXCLUSIVE MODE;
      IF NOT EXISTS (
          SELECT FROM deliveries
          WHERE seq BETWEEN (${edge('min', slot)}) AND (${edge('max', slot)})
            AND slot = ${slot})
        AND NOT EXISTS (SELECT FROM body_slots WHERE slot = ${slot} AND (opened_at IS NOT NULL OR unused_since IS NULL))
        AND NOT EXISTS (${seenByOthers(slot)})
      THEN
        TRUNCATE delivery_bodies_${slot};
        UPDATE body_slots SET unused_since = NULL WHERE slot = ${slot};
      END IF;
    EXCEPTION WHEN lock_not_available OR query_canceled THEN
      NULL;
    END $$`,
});

/** The number of deliveries that are left, up to one more than few; undefined while it takes long to tell. */
async function countLeft(server: Server, ...slot: readonly number[]): Promise<number | undefined> {
  try {
    const [, [row] = []] = await server.transaction([
      [{ text: `SET LOCAL statement_timeout = ${COUNT_TIMEOUT}` }, []],
      [LEFT, slot],
    ]);
    return Number(row?.[0]);
  } catch (error) {
    if (sqlState(error) === QUERY_CANCELED) return undefined;
    throw error;
  }
}

/** Takes a step of emptying a slot; resolves to whether there is more to do now. Rejects as `Server.write` does. */
export async function emptySlot(server: Server, { slot, first, last }: ClosedSlot): Promise<boolean> {
  const left = await countLeft(server, slot, first, last);
  if (left === undefined || left > FEW) return false;
  if (left > 0) {
    const [copied] = await server.write(copyFrom(slot), [first, last]);
    return Number(copied?.[0]) > 0;
  }
  await server.transaction([
    [{ text: `SET LOCAL lock_timeout = ${LOCK_TIMEOUT}` }, []],
    [{ text: `SET LOCAL statement_timeout = ${TIMEOUT}` }, []],
    [emptying(slot), []],
  ]);
  return false;
}
