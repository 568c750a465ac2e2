/** A value as it is moved, the same whatever the engine. */
export type Value = string | number | null | Uint8Array;

/** A row as it is moved: the values of `MovedTable.columns`. */
export type MovedRow = readonly Value[];

/**
 * What a column holds. `name` is a text that every engine stores as it is; `text` may have what some engine cannot
 * store as it is; `key` is a text that was made by `storedKey`.
 */
export type ColumnKind = 'integer' | 'name' | 'text' | 'key' | 'bytes';

export interface Column {
  readonly name: string;
  readonly kind: ColumnKind;
}

/** A table whose rows are moved. Its first column is its key, which the engine gives, in the order of the rows. */
export interface MovedTable {
  readonly name: 'users' | 'deliveries' | 'jobs';
  readonly key: string;
  readonly columns: readonly Column[];
}

function table(name: MovedTable['name'], kinds: Readonly<Record<string, ColumnKind>>): MovedTable {
  const columns = Object.entries(kinds).map(([name, kind]) => ({ name, kind }));
  return { name, key: columns[0]?.name ?? '', columns };
}

/** All tables, each behind those that it refers to. */
export const movedTables: readonly MovedTable[] = [
  table('users', { id: 'integer', name: 'name', email: 'name' }),
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
  }),
  // Without `owner`: nobody holds a lease in the target. `due_at` says when the one of the source would have ended.
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
  }),
];

/** A batch ends behind the row that makes it as large as this, in bytes, or as long as this, in rows. */
export const BATCH = { bytes: 2 * 1024 * 1024, rows: 5_000 } as const;
/** What a row counts for beside its texts and bytes. */
export const ROW_BYTES = 100;
