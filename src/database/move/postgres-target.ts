import { MOVING } from '../migration-files.ts';
import { resize } from '../postgres/inbox/append.ts';
import { DELIVERY_BYTES } from '../postgres/inbox/bodies/body-sql.ts';
import { packBodies } from '../postgres/inbox/packed-bodies.ts';
import { migrate } from '../postgres/migrate.ts';
import type { Connection } from '../postgres/pool/connection.ts';
import { storable } from '../postgres/text.ts';
import type { MoveTarget } from './move-end.ts';
import { moveReads, openEnd } from './postgres-source.ts';
import { type MovedRow, type MovedTable, movedTables } from './tables.ts';

/** The advisory lock of a move, to which the oid of the table `migrations` is added; an arbitrary number. */
const LOCK = 7_067_842_644_000_000;
const UNMARK = `DELETE FROM migrations WHERE starts_with(name, '${MOVING}')`;

/** Opens a database as the target of a move, locked against other moves. */
export function openPostgresTarget(url: string): Promise<MoveTarget> {
  return openEnd(url, 'target', async (connection) => {
    await migrate(connection, 'expected');
    // The server may still be executing the last batch of a killed move.
    await connection.run(
      { text: `SELECT pg_advisory_lock(${LOCK} + 'migrations'::regclass::oid::bigint)` },
      [],
    );
    return targetOn(connection);
  });
}

async function targetOn(connection: Connection): Promise<Omit<MoveTarget, keyof AsyncDisposable>> {
  const run = (text: string, values: readonly unknown[] = []) => connection.run({ text }, values);
  const reads = await moveReads(connection, 'target');
  const [mark] = await run(`SELECT name FROM migrations WHERE starts_with(name, '${MOVING}')`);
  const tables = movedTables.map(({ name }) => name).join(', ');
  return {
    ...reads,
    unfinished: mark === undefined ? undefined : String(mark[0]).slice(MOVING.length),
    async begin(origin) {
      await run('INSERT INTO migrations (name, applied_at) VALUES ($1, $2)', [
        `${MOVING}${origin}`,
        Date.now(),
      ]);
      try {
        // A service that starts later sees the mark.
        await reads.checkAlone();
      } catch (error) {
        await run(UNMARK);
        throw error;
      }
    },
    async clear() {
      await connection.transaction([
        [{ text: `TRUNCATE ${tables}, inbox_size, delivery_bodies RESTART IDENTITY` }, []],
        [{ text: UNMARK }, []],
      ]);
    },
    async last({ name, key }) {
      const [row] = await run(`SELECT max(${key}) FROM ${name}`);
      return Number(row?.[0] ?? 0);
    },
    async write(table, rows) {
      const { text, values } = insert(table, rows);
      const sized = `WITH stored AS (${text} RETURNING ${DELIVERY_BYTES} AS bytes) ${resize('+', 'stored')}`;
      await run(table.name === 'deliveries' ? sized : text, values);
    },
    async setCounter({ name, key }, counter) {
      if (counter === 0) return;
      const sequence = `pg_get_serial_sequence('${name}', '${key}')`;
      await run(
        `SELECT setval(${sequence}, greatest($1, coalesce(pg_sequence_last_value(${sequence}), 1)))`,
        [counter],
      );
    },
    async finish() {
      await run('UPDATE retention_cursors SET at = 0, seq = 0');
      // The users were not created now: whoever follows them begins here.
      await connection.transaction([
        [{ text: 'TRUNCATE user_events, user_relay' }, []],
        [
          {
            text: `INSERT INTO user_events (type, at, user_id, name, email) VALUES ('start', $1::bigint, 0, '', '')`,
          },
          [Date.now()],
        ],
      ]);
      await run(`ANALYZE ${tables}`);
      await run(UNMARK);
    },
  };
}

const ARRAYS = { integer: 'bigint[]', name: 'text[]', text: 'text[]', key: 'text[]' } as const;

/** Inserts all rows in one statement. Blobs are one value with the offset and length of each. */
function insert({ name, columns }: MovedTable, rows: readonly MovedRow[]) {
  const values: unknown[] = [];
  const given: string[] = [];
  const arrays: string[] = [];
  const selected: string[] = [];
  const array = (type: string, named: string, items: readonly unknown[]) => {
    arrays.push(`$${values.push(items)}::${type}`);
    given.push(named);
  };
  for (const [i, column] of columns.entries()) {
    if (column.kind !== 'bytes') {
      const escaped = column.kind === 'text' || column.kind === 'key';
      array(
        ARRAYS[column.kind],
        column.name,
        rows.map((row) => (escaped ? storable(row[i] as string | null) : row[i])),
      );
      selected.push(column.name);
      continue;
    }
    const { starts, lengths, bytes } = packBodies(rows.map((row) => row[i] as Uint8Array));
    array('int[]', `${column.name}_start`, starts);
    array('int[]', `${column.name}_length`, lengths);
    const all = `$${values.push(bytes)}::bytea`;
    selected.push(`substring(${all} FROM ${column.name}_start FOR ${column.name}_length)`);
  }
  const names = columns.map(({ name }) => name).join(', ');
  const text = `
    INSERT INTO ${name} (${names}) OVERRIDING SYSTEM VALUE
    SELECT ${selected.join(', ')} FROM unnest(${arrays.join(', ')}) AS given (${given.join(', ')})`;
  return { text, values };
}
