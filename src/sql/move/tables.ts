import { ExpectedError } from '../../core/errors.ts';
import type { MaybePromise } from '../../core/scheduler.ts';

/** A value in transit, in the same form for both engines. */
export type Value = string | number | null | Uint8Array;

/** A row in transit: the values of `MovedTable.columns`. */
export type MovedRow = readonly Value[];

/**
 * The kind of a column. `name` is text that both engines store unchanged; `text` may need escaping in one
 * engine; `key` is a result of `storedKey`.
 */
type ColumnKind = 'integer' | 'name' | 'text' | 'key' | 'bytes';

export interface Column {
  readonly name: string;
  readonly kind: ColumnKind;
}

/** A table to move. Its first column is its key, which the engine assigns in ascending order. */
export interface MovedTable {
  readonly name: keyof typeof COLUMNS;
  readonly key: string;
  readonly columns: readonly Column[];
}

/** The columns of all tables with their kinds; each table after those that it references. */
const COLUMNS = {
  users: 'id integer, name name, email name, version integer',
  deliveries:
    'seq integer, id name, source text, event text, data_pointer text, content_type text, body bytes, ' +
    'received_at integer, dedup_key key, headers name, trace name, sender_event text',
  // Without `owner` and `claimed_at`, because the target has no leases; `due_at` then holds the end of the
  // source's lease. Without `blocked`, which is derived from other columns.
  jobs:
    'seq integer, delivery integer, target text, status name, attempts integer, due_at integer, order_key ' +
    'key, error text, finished_at integer, crashes integer, duration integer, ended_by name, run_at ' +
    'integer, priority integer',
  attempts:
    'seq integer, job integer, attempt integer, outcome name, started_at integer, duration integer, ' +
    'process name, status integer, answer text, error text',
  remembered_keys: 'seq integer, source text, dedup_key key, id name, received_at integer',
  checkpoints: 'seq integer, name text, at integer',
  enqueued: 'seq integer, id name, source text, event text, body bytes, received_at integer, dedup_key text',
  api_tokens:
    'seq integer, name name, digest name, scopes name, created_at integer, expires_at integer, revoked_at ' +
    'integer, used_at integer',
  audit_events: 'seq integer, at integer, action integer, principal text, type text, data text',
} as const;

/** All tables, each after those that it references. */
export const movedTables: readonly MovedTable[] = Object.entries(COLUMNS).map(([name, columns]) => {
  const all = columns.split(', ').map((column): Column => {
    const [name = '', kind] = column.split(' ');
    return { name, kind: kind as ColumnKind };
  });
  return { name: name as MovedTable['name'], key: all[0]?.name ?? '', columns: all };
});

/** A batch ends with the row that reaches one of these limits. */
export const BATCH = { bytes: 2 * 1024 * 1024, rows: 5_000 } as const;
/** Estimated size of a row without its texts and blobs, in bytes. */
export const ROW_BYTES = 100;

/** What differs between the engines: one of the two databases of a move, locked against services. */
export interface MoveEngine extends AsyncDisposable {
  readonly name: 'sqlite' | 'postgres';
  /** The first value that a query returns. */
  value(sql: string): MaybePromise<unknown>;
  /** Runs statements in one transaction; they are durable once it returns or resolves. */
  commit(...statements: readonly string[]): MaybePromise<unknown>;
  /** A batch of rows with keys greater than `after`, in key order; empty at the end. */
  read(table: MovedTable, after: number): MaybePromise<readonly MovedRow[]>;
  /** Stores rows with their keys in one transaction. */
  write(table: MovedTable, rows: readonly MovedRow[]): MaybePromise<unknown>;
  /** The highest key ever used; 0 if there is none. */
  counter(table: MovedTable): MaybePromise<number>;
  /** Reserves all keys up to `counter`, which is above 0. */
  setCounter(table: MovedTable, counter: number): MaybePromise<unknown>;
  /** Fails with MoveError if a service uses the database. */
  checkAlone(): MaybePromise<void>;
  /** Statements that remove all rows, and statements that fill the columns that a move does not copy. */
  readonly clear: readonly string[];
  readonly derive: readonly string[];
  /** Called before the mark of the move is removed. */
  settle(): MaybePromise<unknown>;
}

/** A move was refused or stopped; the message says what to do. */
export class MoveError extends ExpectedError {
  override readonly name = 'MoveError';
  readonly code = 'MOVE';
}

/** The error if another process uses one of the databases. */
export function inUse(which: 'source' | 'target'): MoveError {
  return new MoveError(
    `The ${which} is in use by another process. Stop every service that runs on it, and try again.`,
  );
}
