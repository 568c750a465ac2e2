import { ExpectedError } from '../../core/errors.ts';
import type { MaybePromise } from '../../core/scheduler.ts';
import type { Codec } from '../../relations/codec.ts';
import { codecOf } from '../../relations/codecs.ts';
import { type Relation, USER_COLUMNS, USERS, type Value } from '../../relations/relation.ts';
import type { SchemaSession } from '../schema/steps.ts';
import { identifier, VERSION_COLUMN } from '../schema/tables.ts';

/** A row in transit, in the same form for both engines: the values of `MovedTable.columns`. */
export type MovedRow = readonly Value[];

/**
 * The kind of a column. `name` is text that both engines store unchanged; `text` may need escaping in one
 * engine; `key` is a result of `storedKey`.
 */
type ColumnKind = 'integer' | 'name' | 'text' | 'key' | 'bytes';

export interface Column {
  readonly name: string;
  /** Or how the engines store the type of a declared column. */
  readonly kind: ColumnKind | Codec;
}

/** A table to move. */
export interface MovedTable {
  readonly name: string;
  /** The names of the first columns. */
  readonly key: readonly string[];
  readonly columns: readonly Column[];
  /** Whether the engine assigns the key in ascending order. */
  readonly isNumbered: boolean;
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
    'integer, priority integer, answer_status integer, answer text',
  attempts:
    'seq integer, job integer, attempt integer, outcome name, started_at integer, duration integer, ' +
    'process name, status integer, answer text, error text',
  remembered_keys: 'seq integer, source text, dedup_key key, id name, received_at integer',
  checkpoints: 'seq integer, name text, at integer',
  enqueued: 'seq integer, id name, source text, event text, body bytes, received_at integer, dedup_key text',
  webhook_tenants: 'seq integer, name name, description text, version integer, created_at integer',
  webhook_endpoints:
    'seq integer, id name, tenant name, settings text, secrets name, disabled name, failing_since integer, ' +
    'created_at integer, updated_at integer, disabled_at integer',
  webhook_event_types: 'seq integer, name name, settings text, created_at integer, updated_at integer',
  api_tokens:
    'seq integer, name name, digest name, scopes name, created_at integer, expires_at integer, revoked_at ' +
    'integer, used_at integer',
  audit_events: 'seq integer, at integer, action integer, principal text, type text, data text',
} as const;

export type FixedTable = keyof typeof COLUMNS;

/** All tables that every database has, each after those that it references. */
const movedTables: readonly MovedTable[] = Object.entries(COLUMNS).map(([name, columns]) => {
  const all = columns.split(', ').map((column): Column => {
    const [name = '', kind] = column.split(' ');
    return { name, kind: kind as ColumnKind };
  });
  return { name, key: [all[0]?.name ?? ''], columns: all, isNumbered: true };
});

/** All tables of a database with these relations. */
export function movedWith(relations: readonly Relation[]): readonly MovedTable[] {
  const users = relations.find(({ name }) => name === USERS)?.columns ?? [];
  const added = users.filter(({ name }) => !USER_COLUMNS.includes(name)).map(declared);
  const [first, ...rest] = movedTables.map((table) =>
    table.name === USERS ? { ...table, columns: [...table.columns, ...added] } : table,
  );
  // The tables of other programs are theirs to move.
  const own = relations.filter(({ name, existing }) => name !== USERS && existing === undefined);
  const tables = own.map(tableOf);
  return [...(first === undefined ? [] : [first]), ...tables, ...rest];
}

function tableOf({ table, key, columns, references }: Relation): MovedTable {
  const [ofKey, others] = [true, false].map((is) =>
    columns
      // The target computes what the source has computed.
      .filter(({ name, computed }) => computed === undefined && key.includes(name) === is)
      .toSorted((a, b) => key.indexOf(a.name) - key.indexOf(b.name)),
  );
  const isNumbered =
    key.length === 1 &&
    ofKey?.[0]?.type.kind === 'serial' &&
    !references.some((reference) => reference.columns.includes(key[0] ?? ''));
  const version: Column = { name: VERSION_COLUMN, kind: 'integer' };
  return {
    name: table,
    key,
    columns: [...(ofKey ?? []), ...(others ?? [])].map(declared).concat(version),
    isNumbered,
  };
}

function declared({ name, type }: Relation['columns'][number]): Column {
  return { name, kind: codecOf(type) };
}

/** A batch ends with the row that reaches one of these limits. */
export const BATCH = { bytes: 2 * 1024 * 1024, rows: 5_000 } as const;
/** Estimated size of a row without its texts and blobs, in bytes. */
export const ROW_BYTES = 100;

/** The statement that reads rows in the order of their keys, and what it selects. */
export function readParts(
  engine: 'sqlite' | 'postgres',
  { name, key, columns }: MovedTable,
  isAfter: boolean,
) {
  const names = key.map((column) => `r.${identifier(column)}`);
  const parameters = key.map((_, i) => {
    const kind = columns[i]?.kind;
    if (engine === 'sqlite') return `?${i + 1}`;
    return `$${i + 1}::${typeof kind === 'object' ? kind.postgres.type : 'bigint'}`;
  });
  const where = isAfter ? ` WHERE (${names.join(', ')}) > (${parameters.join(', ')})` : '';
  return {
    values: columns
      .map(({ name, kind }) => {
        const column = `r.${identifier(name)}`;
        return typeof kind === 'object' ? kind[engine].select(column) : column;
      })
      .join(', '),
    from: `${identifier(name)} AS r${where}`,
    order: names.join(', '),
    descending: names.map((column) => `${column} DESC`).join(', '),
  };
}

/** What differs between the engines: one of the two databases of a move, locked against services. */
export interface MoveEngine extends AsyncDisposable {
  readonly name: 'sqlite' | 'postgres';
  /** Changes the tables of relations. */
  readonly session: SchemaSession;
  /**
   * Locks the tables of a source against writes. Lets the rows of a target refer to rows that come later.
   */
  begin(tables: readonly MovedTable[]): MaybePromise<unknown>;
  hasTable(name: string): MaybePromise<boolean>;
  /** The first value that a query returns. */
  value(sql: string): MaybePromise<unknown>;
  /** Runs statements in one transaction; they are durable once it returns or resolves. */
  commit(...statements: readonly string[]): MaybePromise<unknown>;
  /** A batch of rows with keys greater than that of a row, in key order; empty at the end. */
  read(table: MovedTable, after: MovedRow | undefined): MaybePromise<readonly MovedRow[]>;
  /** The key of the last row. */
  last(table: MovedTable): MaybePromise<MovedRow | undefined>;
  /** Stores rows with their keys in one transaction. */
  write(table: MovedTable, rows: readonly MovedRow[]): MaybePromise<unknown>;
  /** The highest key ever used; 0 if there is none. */
  counter(table: MovedTable): MaybePromise<number>;
  /** Reserves all keys up to `counter`, which is above 0. */
  setCounter(table: MovedTable, counter: number): MaybePromise<unknown>;
  /** Fails with MoveError if a service uses the database. */
  checkAlone(): MaybePromise<void>;
  /** Statements that remove all rows, and statements that fill the columns that a move does not copy. */
  clear(tables: readonly MovedTable[]): readonly string[];
  readonly derive: readonly string[];
  /** Called before the mark of the move is removed. */
  settle(tables: readonly MovedTable[]): MaybePromise<unknown>;
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
