import type { BodiesRule, PruneStep } from '../../inbox/prune.ts';
import type { Row } from '../postgres-pool/connection.ts';
import { sqlState } from '../postgres-pool/faults.ts';
import type { Server } from '../postgres-pool/server.ts';
import { SERVER_NOW } from './server-clock.ts';

/** The length of the body of a delivery in the row `row`, wherever the body is. */
export const bodyLength = (row: string) => `coalesce(${row}.body_length, octet_length(${row}.body))`;

/** The body of a delivery in the row `row`, wherever it is. It locks all slots; `bodiesOf` does not. */
export const bodyOf = (row: string) => `
  coalesce(${row}.body, (SELECT b.body FROM delivery_bodies AS b WHERE b.slot = ${row}.slot AND b.seq = ${row}.seq))`;

/** What a delivery holds in body and headers, in bytes. */
export const DELIVERY_BYTES = `${bodyLength('deliveries')} + coalesce(octet_length(headers), 0)`;

/** A delivery whose body was in a slot. */
interface InSlot {
  readonly seq: number;
  readonly slot: number;
}

/**
 * The bodies of deliveries by their numbers. A body may have been copied into its row and its slot emptied meanwhile: the
 * statement locks the slot before it takes its snapshot, so it finds the body in one of both. Rejects as `Server.write` does.
 */
export async function bodiesOf(
  server: Server,
  deliveries: readonly InSlot[],
): Promise<ReadonlyMap<number, Uint8Array>> {
  const bySlot = Map.groupBy(deliveries, ({ slot }) => slot);
  const found = await Promise.all(
    Array.from(bySlot, ([slot, all]) => server.write(readFrom(slot), [all.map(({ seq }) => seq)])),
  );
  return new Map(found.flat() as unknown as readonly (readonly [number, Uint8Array])[]);
}

const readFrom = (slot: number) => ({
  name: `bodies-${slot}`,
  text: `
    SELECT d.seq, coalesce(d.body, b.body)
    FROM deliveries AS d LEFT JOIN delivery_bodies_${slot} AS b ON b.slot = ${slot} AND b.seq = d.seq
    WHERE d.seq = ANY ($1::bigint[])`,
});

/** A slot that takes no new bodies and has old ones: the numbers of their deliveries lie between the first and the last. */
interface ClosedSlot {
  readonly slot: number;
  readonly first: number;
  readonly last: number;
}

/** When the slot for new bodies is changed. */
interface Rotation {
  /** Whether new bodies go to slots. */
  readonly opens: boolean;
  /** A slot is open for this long, in milliseconds, */
  readonly age: number;
  /** and until it has this size in bytes; null: no limit. */
  readonly bytes: number | null;
}

const isEmpty = (slot: string) => `NOT EXISTS (SELECT FROM delivery_bodies AS b WHERE b.slot = ${slot})`;

// One process at a time.
const LOCK = { text: `SELECT FROM retention_cursors WHERE rule = 'bodies' FOR UPDATE` };
// While no slot is empty the open one stays.
const CLOSE = {
  text: `
    UPDATE body_slots SET opened_at = NULL, closed_at = ${SERVER_NOW}
    WHERE opened_at IS NOT NULL AND (opened_at <= ${SERVER_NOW} - $1::bigint
        OR pg_total_relation_size(format('delivery_bodies_%s', slot)::regclass) >= $2::bigint)
      AND (NOT $3::boolean OR EXISTS (
        SELECT FROM body_slots AS other WHERE other.opened_at IS NULL AND ${isEmpty('other.slot')}))`,
};
const OPEN = {
  text: `
    UPDATE body_slots SET opened_at = ${SERVER_NOW}, unused_since = NULL
    WHERE NOT EXISTS (SELECT FROM body_slots WHERE opened_at IS NOT NULL) AND slot = (
      SELECT slot FROM body_slots AS other WHERE ${isEmpty('other.slot')} ORDER BY closed_at, slot LIMIT 1)`,
};

/** Changes the slot for new bodies when it is time for that. Rejects as `Server.write` does. */
async function rotateSlots(server: Server, { opens, age, bytes }: Rotation): Promise<void> {
  await server.transaction([
    [LOCK, []],
    [CLOSE, [age, bytes, opens]],
    ...(opens ? [[OPEN, []] as const] : []),
  ]);
}

/** Those that removal has come past: what is left there has ended late, or stays. */
const PASSED = {
  text: `
    SELECT slot, first, last FROM body_slots, LATERAL (
      SELECT min(seq) AS first, max(seq) AS last FROM delivery_bodies AS b WHERE b.slot = body_slots.slot) AS bodies
    WHERE opened_at IS NULL AND first IS NOT NULL AND closed_at < (SELECT max(at) FROM retention_cursors)
    ORDER BY closed_at`,
};

/** The closed slots that removal has come past, the oldest first. Rejects as `Server.write` does. */
async function passedSlots(server: Server): Promise<readonly ClosedSlot[]> {
  const rows: readonly Row[] = await server.write(PASSED, []);
  return rows.map(([slot, first, last]) => ({
    slot: Number(slot),
    first: Number(first),
    last: Number(last),
  }));
}

/** A slot is emptied when at most so many deliveries are left in it; their bodies are copied into their rows. */
const FEW = 10_000;
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
async function emptySlot(server: Server, { slot, first, last }: ClosedSlot): Promise<boolean> {
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

/** Takes a step of the rule for bodies. Rejects as `Server.write` does. */
export async function emptySlots(server: Server, rule: BodiesRule & Rotation): Promise<PruneStep> {
  await rotateSlots(server, rule);
  const slots = await passedSlots(server);
  let isLast = true;
  for (const slot of slots) {
    if (await emptySlot(server, slot)) isLast = false;
  }
  return { removed: 0, looked: slots.length, isLast };
}
