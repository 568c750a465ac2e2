/** A value as it is moved, the same for every engine. */
export type Value = string | number | null | Uint8Array;

/** A row as it is moved: the values of `MovedTable.columns`. */
export type MovedRow = readonly Value[];

/**
 * The kind of a column. `name` is a text that every engine can store; `text` may need escaping in some engine; `key` is
 * the result of `storedKey`.
 */
export type ColumnKind = 'integer' | 'name' | 'text' | 'key' | 'bytes';

export interface Column {
  readonly name: string;
  readonly kind: ColumnKind;
}

/** A moved table. Its first column is its key, which the engine assigns in ascending order. */
export interface MovedTable {
  readonly name:
    | 'users'
    | 'deliveries'
    | 'jobs'
    | 'attempts'
    | 'remembered_keys'
    | 'marks'
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
  // Without `owner` and `claimed_at`: there are no leases in the target. `due_at` keeps the end of a lease in the source.
  // Which jobs wait for their order follows from the others.
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
    deaths: 'integer',
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
  table('marks', { seq: 'integer', name: 'text', at: 'integer' }),
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
/** The size of a row without its texts and blobs, in bytes. */
export const ROW_BYTES = 100;
