import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import type { WriteQueue } from '../sqlite-writer/write-queue.ts';
import type { Query, Row, Sql, Step, Value } from '../stores/sql.ts';
import { readRows } from './connection.ts';
import type { Reader } from './reader.ts';

/** Where the statements of both engines run in an SQLite database. */
interface SqliteSqlOptions {
  /** Reads on the caller's thread. */
  readonly reads: DatabaseSync;
  readonly writes: WriteQueue;
  /** Runs long reads on a separate thread; without it, the caller's thread runs them. */
  readonly reader?: Reader | undefined;
}

/** Runs the statements of both engines in an SQLite database. Statements are prepared on first use. */
export function sqliteSql({ reads, writes, reader }: SqliteSqlOptions): Sql {
  const prepared = new Map<Query, StatementSync>();
  function statement(query: Query): StatementSync {
    const known = prepared.get(query);
    if (known !== undefined) return known;
    const made = reads.prepare(query.sqlite);
    made.setReturnArrays(true);
    prepared.set(query, made);
    return made;
  }
  return {
    read(query, ...values) {
      const bound = values.map(toSqlite);
      if (query.isLong && reader !== undefined) return reader.rows({ text: query.sqlite, values: bound });
      return readRows<Row>(statement(query), ...bound);
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
