import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import type { WriteQueue } from '../sqlite-writer/write-queue.ts';
import type { Sql, Step, Value } from '../stores/sql.ts';
import { PreparedStatements } from './connection.ts';
import type { Reader } from './reader.ts';
import type { TickSnapshot } from './tick-snapshot.ts';

/** Where the statements of both engines run in an SQLite database. */
interface SqliteSqlOptions {
  /** Reads on the caller's thread. */
  readonly reads: DatabaseSync;
  readonly writes: WriteQueue;
  /** Runs long reads on a separate thread; without it, the caller's thread runs them. */
  readonly reader?: Reader | undefined;
  /** The snapshot of `reads`, if its reads shall share it. */
  readonly snapshot?: TickSnapshot | undefined;
}

/** Runs the statements of both engines in an SQLite database. Statements are prepared on first use. */
export function sqliteSql({ reads, writes, reader, snapshot }: SqliteSqlOptions): Sql {
  const statements = new PreparedStatements(reads);
  return {
    read(query, ...values) {
      const bound = values.map(toSqlite);
      if (query.isLong && reader !== undefined) return reader.rows({ text: query.sqlite, values: bound });
      snapshot?.enter();
      return statements.read(query.sqlite, bound);
    },
    write: (...steps) => writes.submit(steps.map(writeStep)),
  };
}

/** A step as the writer runs it. */
export function writeStep([{ name }, ...values]: Step) {
  return { statement: name, values: values.map(toSqlite) };
}

function toSqlite(value: Value): SQLInputValue {
  if (value === null || typeof value !== 'object' || value instanceof Uint8Array) return value;
  return JSON.stringify('rows' in value ? value.rows : value);
}
