import assert from 'node:assert/strict';
import type { DatabaseSync } from 'node:sqlite';

/** A row of `authors` (without `author_id` and `reader`) or of `loans`. */
export interface StoredRow {
  readonly id?: number;
  readonly name?: string;
  readonly author_id?: number;
  readonly reader?: string;
  readonly n: string;
}

interface StoredEvent {
  readonly position: number | undefined;
  readonly relation: string;
  readonly type: string;
  readonly row: StoredRow;
}

/** The rows of the relations and their log of changes. */
export interface RowContent {
  readonly authors: readonly StoredRow[];
  readonly loans: readonly StoredRow[];
  readonly events: readonly StoredEvent[];
}

type Values = readonly unknown[];

/** The queries of each part, for both engines: 64-bit numbers as texts. */
export const ROW_QUERIES = {
  authors: 'SELECT id, name, CAST(n AS text) FROM authors',
  loans: 'SELECT author_id, reader, CAST(n AS text) FROM loans',
  events: 'SELECT position, relation, type, "row" FROM relation_events ORDER BY position',
} as const;

export function rowContent(parts: Readonly<Record<keyof typeof ROW_QUERIES, readonly Values[]>>): RowContent {
  return {
    authors: parts.authors.map(([id, name, n]) => ({ id: Number(id), name: String(name), n: String(n) })),
    loans: parts.loans.map(([author, reader, n]) => ({
      author_id: Number(author),
      reader: String(reader),
      n: String(n),
    })),
    events: parts.events.map(([position, relation, type, row]) => ({
      position: position === null ? undefined : Number(position),
      relation: String(relation),
      type: String(type),
      row: JSON.parse(String(row)),
    })),
  };
}

/** What an SQLite database holds; undefined if the relations have no tables yet. */
export function readRows(db: DatabaseSync): RowContent | undefined {
  if (db.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'loans'`).get() === undefined) return undefined;
  const all = (sql: string) => {
    const statement = db.prepare(sql);
    statement.setReturnArrays(true);
    return statement.all() as unknown as readonly Values[];
  };
  const { authors, loans, events } = ROW_QUERIES;
  return rowContent({ authors: all(authors), loans: all(loans), events: all(events) });
}

const keyOf = ({ id, author_id, reader }: StoredRow) =>
  reader === undefined ? `${id}` : `${author_id},${reader}`;

/** Fails unless the events have no gap and lead to the rows, and each removal tells the row as it was. */
export function checkEvents({ authors, loans, events }: RowContent): void {
  const positions = events.flatMap(({ position }) => position ?? []);
  const gap = positions.findIndex((position, i) => position !== (positions[0] ?? 0) + i);
  assert.equal(gap, -1, `a gap before position ${positions[gap]}`);
  // Of a log whose first events were removed, only the rows that it names are known.
  const isWhole = events[0]?.type === 'start';
  const replayed = new Map<string, StoredRow | undefined>();
  for (const { relation, type, row, position } of events) {
    if (type === 'start') continue;
    const key = `${relation} ${keyOf(row)}`;
    const before = replayed.get(key);
    const what = `${type} ${key} at ${position}`;
    if (isWhole || replayed.has(key)) assert.equal(before !== undefined, type !== 'created', what);
    if (type === 'deleted' && before !== undefined) assert.deepEqual(row, before, what);
    replayed.set(key, type === 'deleted' ? undefined : row);
  }
  const rows = new Map<string, StoredRow>([
    ...authors.map((row) => [`authors ${keyOf(row)}`, row] as const),
    ...loans.map((row) => [`loans ${keyOf(row)}`, row] as const),
  ]);
  for (const [key, row] of replayed)
    assert.deepEqual(rows.get(key), row, `the events of ${key} lead to its row`);
  if (isWhole) for (const key of rows.keys()) assert.ok(replayed.has(key), `no event tells of ${key}`);
}
