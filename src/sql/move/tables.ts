import { createHash } from 'node:crypto';
import { setImmediate as nextTick } from 'node:timers/promises';
import { ExpectedError } from '../../core/errors.ts';
import type { MaybePromise } from '../../core/maybe-promise.ts';

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
  readonly name:
    | 'users'
    | 'deliveries'
    | 'jobs'
    | 'attempts'
    | 'remembered_keys'
    | 'checkpoints'
    | 'enqueued'
    | 'audit_events'
    | 'api_tokens';
  readonly key: string;
  readonly columns: readonly Column[];
}

function table(name: MovedTable['name'], kinds: Readonly<Record<string, ColumnKind>>): MovedTable {
  const columns = Object.entries(kinds).map(([name, kind]) => ({ name, kind }));
  return { name, key: columns[0]?.name ?? '', columns };
}

/** All tables, each after those that it references. */
export const movedTables: readonly MovedTable[] = [
  table('users', { id: 'integer', name: 'name', email: 'name', version: 'integer' }),
  table('deliveries', {
    seq: 'integer',
    id: 'name',
    source: 'text',
    event: 'text',
    data_pointer: 'text',
    content_type: 'text',
    body: 'bytes',
    received_at: 'integer',
    dedup_key: 'key',
    headers: 'name',
    trace: 'name',
    sender_event: 'text',
  }),
  // Without `owner` and `claimed_at`, because the target has no leases; `due_at` then holds the end of the
  // source's lease. Without `blocked`, which is derived from other columns.
  table('jobs', {
    seq: 'integer',
    delivery: 'integer',
    target: 'text',
    status: 'name',
    attempts: 'integer',
    due_at: 'integer',
    order_key: 'key',
    error: 'text',
    finished_at: 'integer',
    crashes: 'integer',
    duration: 'integer',
    ended_by: 'name',
    run_at: 'integer',
    priority: 'integer',
  }),
  table('attempts', {
    seq: 'integer',
    job: 'integer',
    attempt: 'integer',
    outcome: 'name',
    started_at: 'integer',
    duration: 'integer',
    process: 'name',
    status: 'integer',
    answer: 'text',
    error: 'text',
  }),
  table('remembered_keys', {
    seq: 'integer',
    source: 'text',
    dedup_key: 'key',
    id: 'name',
    received_at: 'integer',
  }),
  table('checkpoints', { seq: 'integer', name: 'text', at: 'integer' }),
  table('enqueued', {
    seq: 'integer',
    id: 'name',
    source: 'text',
    event: 'text',
    body: 'bytes',
    received_at: 'integer',
    dedup_key: 'text',
  }),
  table('api_tokens', {
    seq: 'integer',
    name: 'name',
    digest: 'name',
    scopes: 'name',
    created_at: 'integer',
    expires_at: 'integer',
    revoked_at: 'integer',
    used_at: 'integer',
  }),
  table('audit_events', {
    seq: 'integer',
    at: 'integer',
    action: 'integer',
    principal: 'text',
    type: 'text',
    data: 'text',
  }),
];

/** A batch ends with the row that reaches one of these limits. */
export const BATCH = { bytes: 2 * 1024 * 1024, rows: 5_000 } as const;
/** Estimated size of a row without its texts and blobs, in bytes. */
export const ROW_BYTES = 100;

/**
 * One of the two databases of a move, locked against services. The caller that opened it must dispose of it.
 */
export interface MoveEnd extends AsyncDisposable {
  /** Identifies this database and its copies. */
  readonly origin: string;
  count(table: MovedTable): MaybePromise<number>;
  /** A batch of rows with keys greater than `after`, in key order; empty at the end. */
  read(table: MovedTable, after: number): MaybePromise<readonly MovedRow[]>;
  /** Fails with MoveError if a service uses the database. */
  checkAlone(): MaybePromise<void>;
  /** The highest key ever used; 0 if there is none. */
  counter(table: MovedTable): MaybePromise<number>;
}

/** The target of a move. Until the move is finished, only another move can open it. */
export interface MoveTarget extends MoveEnd {
  /** The origin of the source of an unfinished move. */
  readonly unfinished: string | undefined;
  /** Marks the database as the target of a move. Fails with MoveError if a service uses it. */
  begin(origin: string): MaybePromise<void>;
  /** Removes all rows. */
  clear(): MaybePromise<void>;
  /** The highest existing key; 0 if there are no rows. */
  last(table: MovedTable): MaybePromise<number>;
  /** Stores rows with their keys in one transaction; they are durable once it returns or resolves. */
  write(table: MovedTable, rows: readonly MovedRow[]): MaybePromise<void>;
  /** Reserves all keys up to `counter`. */
  setCounter(table: MovedTable, counter: number): MaybePromise<void>;
  /** Removes the mark, which opens the database for services. */
  finish(): MaybePromise<void>;
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

/** The number of rows of a table, and the SHA-256 of their values in key order. */
export interface Checksum {
  readonly rows: number;
  readonly sha256: string;
}

/**
 * Reads a whole table; rejects if the signal aborts. `onRows` is called with the number of rows of each
 * batch.
 */
export async function checksumOf(
  end: MoveEnd,
  table: MovedTable,
  signal: AbortSignal,
  onRows: (rows: number) => void,
): Promise<Checksum> {
  const hash = createHash('sha256');
  let rows = 0;
  for (let after = 0; ; ) {
    // Lets process signals be handled between batches, even if reads are synchronous.
    await nextTick();
    signal.throwIfAborted();
    const batch = await end.read(table, after);
    const last = batch.at(-1);
    if (last === undefined) return { rows, sha256: hash.digest('hex') };
    for (const row of batch) {
      hash.update(lineOf(row));
      for (const value of row) if (value instanceof Uint8Array) hash.update(value);
    }
    after = Number(last[0]);
    rows += batch.length;
    onRows(batch.length);
  }
}

/** The values as JSON, with blobs replaced by their length; together with the blobs it identifies the row. */
function lineOf(row: MovedRow): string {
  return `${JSON.stringify(row.map((value) => (value instanceof Uint8Array ? [value.byteLength] : value)))}\n`;
}
