import { whenReady } from '../../core/scheduler.ts';
import type { NewDelivery } from '../../inbox/delivery.ts';
import type {
  Appended,
  CheckpointMove,
  Checkpoints,
  Enqueued,
  EnqueuedDeliveries,
  RelayPlace,
  RelayStore,
  TakenDelivery,
} from '../../inbox/inbox.ts';
import { queries, type Row, type Sql, type Step } from './sql.ts';

/** Maximum number of enqueued deliveries to take at a time. */
const ROWS = 100;
/** Maximum total size of their bodies in bytes, unless the first one is larger. */
const BYTES = 4 * 1024 * 1024;

/** The statements on the place of a relay, the one row of its table. */
function relayTexts(table: string) {
  return {
    beginRelay: `
      INSERT INTO ${table} (id, position, at, moved_at) VALUES (1, $1, $2, $3)
      ON CONFLICT (id) DO UPDATE SET moved_at = excluded.moved_at RETURNING position, at`,
    moveRelay: `
      UPDATE ${table} SET position = $3, at = $4, moved_at = $5 WHERE position = $1 AND at = $2
      RETURNING position`,
    endRelay: `DELETE FROM ${table}`,
  } as const;
}

function relayQueries(group: string, table: string) {
  return queries(group, () => relayTexts(table));
}

/** The statements on the relay of the changes of relations, whose table exists only with declared relations. */
export const CHANGE_RELAY_QUERIES = relayQueries('changes', 'relation_relay');

export const PRODUCER_QUERIES = queries('producers', (sql) => ({
  checkpoints: `SELECT name, at FROM checkpoints WHERE ${sql.isIn('name', '$1', 'text')}`,
  moveCheckpoint: `
    INSERT INTO checkpoints (name, at) VALUES ($1, $3)
    ON CONFLICT (name) DO UPDATE SET at = excluded.at WHERE checkpoints.at = $2 RETURNING name`,
  ...relayTexts('user_relay'),
  oldestEnqueued: {
    long: `
      SELECT seq, id, source, event, body, received_at, dedup_key FROM (
        SELECT *, sum(octet_length(body)) OVER (ORDER BY seq ROWS UNBOUNDED PRECEDING) - octet_length(body) AS bytes_before
        FROM (SELECT * FROM enqueued ORDER BY seq LIMIT ${ROWS}) AS oldest) AS sized
      WHERE bytes_before < ${BYTES} ORDER BY seq`,
  },
  takeEnqueued: `
    DELETE FROM enqueued WHERE ${sql.isIn('seq', '$1', 'bigint')} AND ${sql.isIn('id', '$2', 'text')} RETURNING id`,
}));

/** How an engine stores deliveries in the commit of a step that allows it. */
export interface ConditionalAppends {
  /** Stores deliveries if the step returns a row. Otherwise undefined: it has changed nothing. */
  appendIf(step: Step, deliveries: readonly NewDelivery[]): Promise<readonly Appended[] | undefined>;
  /** Stores the deliveries whose id the step of their rows returns; undefined for the others. */
  appendTaken(
    taken: readonly TakenDelivery[],
    step: (taken: readonly TakenDelivery[]) => Step,
  ): Promise<readonly (Appended | undefined)[]>;
}

/** The checkpoints of a database; `clock` is their clock. */
export function checkpoints(
  sql: Sql,
  { appendIf }: ConditionalAppends,
  clock: Checkpoints['clock'],
): Checkpoints {
  const { checkpoints, moveCheckpoint } = PRODUCER_QUERIES;
  const stepOf = ({ name, from, to }: CheckpointMove): Step => [moveCheckpoint, name, from, to];
  return {
    read: (names) =>
      whenReady(
        sql.read(checkpoints, names),
        (rows) => new Map(rows.map(([name, at]) => [String(name), Number(at)])),
      ),
    async move(move) {
      const [moved = []] = await sql.write(stepOf(move));
      return moved.length > 0;
    },
    async append(move, delivery) {
      return (await appendIf(stepOf(move), [delivery]))?.[0];
    },
    clock,
  };
}

/** The place of a relay of events; by default that of users. */
export function relayStore(
  sql: Sql,
  { appendIf }: ConditionalAppends,
  { beginRelay, moveRelay, endRelay }: typeof CHANGE_RELAY_QUERIES = PRODUCER_QUERIES,
): RelayStore {
  return {
    async begin({ position, at }): Promise<RelayPlace> {
      const [[row = []] = []] = await sql.write([beginRelay, position, at, Date.now()]);
      return { position: Number(row[0]), at: Number(row[1]) };
    },
    async move(from, to, deliveries) {
      const move: Step = [moveRelay, from.position, from.at, to.position, to.at, Date.now()];
      if (deliveries.length > 0) return (await appendIf(move, deliveries)) !== undefined;
      const [moved = []] = await sql.write(move);
      return moved.length > 0;
    },
    async end() {
      await sql.write([endRelay]);
    },
  };
}

/** Deliveries that programs have enqueued through their own connections. */
export function enqueuedDeliveries(
  sql: Sql,
  { appendTaken }: ConditionalAppends,
): Pick<EnqueuedDeliveries, 'oldest' | 'take' | 'remove'> {
  const { oldestEnqueued, takeEnqueued } = PRODUCER_QUERIES;
  return {
    oldest: () => whenReady(sql.read(oldestEnqueued), (rows) => rows.map(enqueuedOf)),
    take: (taken) =>
      appendTaken(taken, (all) => [
        takeEnqueued,
        all.map(({ seq }) => seq),
        all.map(({ delivery }) => delivery.id),
      ]),
    async remove(enqueued) {
      await sql.write([takeEnqueued, enqueued.map(({ seq }) => seq), enqueued.map(({ id }) => id)]);
    },
  };
}

function enqueuedOf(row: Row): Enqueued {
  type Columns = [number, string, string, string, Uint8Array, number, string | null];
  const [seq, id, source, event, body, receivedAt, dedupKey] = row as Columns & Row;
  return { seq, id, source, event, body, receivedAt, dedupKey };
}
