import type { Row } from '../../pool/connection.ts';
import type { Server } from '../../pool/server.ts';
import { SERVER_NOW } from '../server-clock.ts';

/** A slot that takes no new bodies and has old ones: the numbers of their deliveries lie between the first and the last. */
export interface ClosedSlot {
  readonly slot: number;
  readonly first: number;
  readonly last: number;
}

/** When the slot for new bodies is changed. */
export interface Rotation {
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
export async function rotateSlots(server: Server, { opens, age, bytes }: Rotation): Promise<void> {
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
export async function passedSlots(server: Server): Promise<readonly ClosedSlot[]> {
  const rows: readonly Row[] = await server.write(PASSED, []);
  return rows.map(([slot, first, last]) => ({
    slot: Number(slot),
    first: Number(first),
    last: Number(last),
  }));
}
