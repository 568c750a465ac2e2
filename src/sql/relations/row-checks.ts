import { TimeSlice } from '../../core/scheduler.ts';
import type { Value } from '../../relations/relation.ts';
import type { RowConflict, RowValues } from '../../relations/rows/rows.ts';
import { type Bound, type BoundText, name } from '../dialects/row-dialects.ts';
import type { RowEngine } from './row-engine.ts';
import type { RowSql } from './row-sql.ts';

/** Rows per statement, fewer if a constraint has many columns. */
const SLICE = { rows: 2_000, values: 30_000 } as const;

/** The statements of a relation's rows, and those of the relations to which it refers. */
export interface CheckedRelation {
  readonly sql: RowSql;
  /** The statements of a relation; undefined if it is none of the declaration. */
  target(relation: string): RowSql | undefined;
}

/** Rows that were accepted before, by the comparable texts of their values. */
interface Constraint {
  readonly columns: readonly string[];
  /** The indexes of rows that the stored rows refuse. */
  readonly refused: ReadonlySet<number>;
  /** The relation to which the columns refer; undefined for a unique. */
  readonly to: string | undefined;
  /** The columns of this relation whose values an accepted row adds. */
  readonly added: readonly string[];
  readonly accepted: Set<string>;
}

/**
 * All conflicts of new rows with stored rows and with earlier rows without conflicts, which later ones may
 * refer to. Reads once per constraint and slice of rows.
 */
export async function conflictsOf(
  relation: CheckedRelation,
  engine: Pick<RowEngine, 'dialect' | 'readLatest'>,
  rows: readonly RowValues[],
): Promise<readonly RowConflict[]> {
  const { sql } = relation;
  const { key, unique, references } = sql.relation;
  const constraints: Constraint[] = [];
  for (const columns of [key, ...unique]) {
    const refused = await findRows(engine, { sql, columns }, { sql, columns, isThere: true }, rows);
    constraints.push({ columns, refused, to: undefined, added: columns, accepted: new Set() });
  }
  for (const { to, columns, targetColumns } of references) {
    const target = relation.target(to);
    if (target === undefined) continue;
    const there = { sql: target, columns: targetColumns, isThere: false };
    const refused = await findRows(engine, { sql, columns }, there, rows);
    const added = to === sql.relation.name ? targetColumns : [];
    constraints.push({ columns, refused, to, added, accepted: new Set() });
  }
  const slice = new TimeSlice();
  const found: RowConflict[] = [];
  for (const [row, values] of rows.entries()) {
    if (slice.isOver) await slice.next();
    const own = constraints.flatMap((each) => conflictOf(sql, each, row, values));
    found.push(...own);
    if (own.length > 0) continue;
    for (const { added, accepted } of constraints) {
      const text = comparable(sql, added, values);
      if (added.length > 0 && text !== undefined) accepted.add(text);
    }
  }
  return found;
}

function conflictOf(
  sql: RowSql,
  { columns, refused, to, added, accepted }: Constraint,
  row: number,
  values: RowValues,
): readonly RowConflict[] {
  const text = comparable(sql, columns, values);
  if (text === undefined) return [];
  if (to === undefined) {
    return refused.has(row) || accepted.has(text) ? [{ code: 'TAKEN', row, columns }] : [];
  }
  // A row may refer to itself.
  const isThere = !refused.has(row) || accepted.has(text) || comparable(sql, added, values) === text;
  return isThere ? [] : [{ code: 'REFERENCE_MISSING', row, columns, to }];
}

/** The values of columns as a text that is the same for values that are equal; undefined with a null. */
export function comparable(sql: RowSql, columns: readonly string[], values: RowValues): string | undefined {
  const texts: string[] = [];
  for (const column of columns) {
    const value = values[sql.indexOf(column)] ?? null;
    if (value === null) return undefined;
    const { type } = sql.relation.columns[sql.indexOf(column)] ?? {};
    const text = value instanceof Uint8Array ? Buffer.from(value).toString('base64') : String(value);
    const isFolded = type?.kind === 'text' && type.fold;
    texts.push(isFolded ? text.replace(/[A-Z]/g, (letter) => letter.toLowerCase()) : text);
  }
  return JSON.stringify(texts);
}

/** Some columns of a relation. */
interface ColumnsOf {
  readonly sql: RowSql;
  readonly columns: readonly string[];
}

/** The indexes of the rows whose values stored rows have, or have not, in their columns. Skips nulls. */
async function findRows(
  engine: Pick<RowEngine, 'dialect' | 'readLatest'>,
  given: ColumnsOf,
  { isThere, ...stored }: ColumnsOf & { readonly isThere: boolean },
  rows: readonly RowValues[],
): Promise<ReadonlySet<number>> {
  const found = new Set<number>();
  const indexes = given.columns.map((column) => given.sql.indexOf(column));
  const whole = Array.from(rows.keys()).filter((row) =>
    indexes.every((i) => (rows[row]?.[i] ?? null) !== null),
  );
  const size = Math.min(SLICE.rows, Math.floor(SLICE.values / (indexes.length + 1)));
  for (let at = 0; at < whole.length; at += size) {
    const slice = whole.slice(at, at + size);
    const columns = indexes.map((i) => slice.map((row) => rows[row]?.[i] ?? null));
    const statement = searchOf(engine, stored, columns, isThere);
    for (const [nth] of await engine.readLatest(statement)) found.add(slice[Number(nth)] ?? -1);
    // The next slice lets others read first.
    await new Promise(setImmediate);
  }
  return found;
}

function searchOf(
  { dialect }: Pick<RowEngine, 'dialect'>,
  { sql, columns }: ColumnsOf,
  given: readonly (readonly Value[])[],
  isThere: boolean,
): BoundText {
  const storages = columns.map((column) => sql.storageAt(sql.indexOf(column)));
  const bound = storages.map(({ bind }, i): readonly Bound[] => (given[i] ?? []).map(bind));
  const { text, values } = dialect.givenRows(
    storages.map(({ type }) => type),
    bound,
  );
  const equal = storages.map(({ compared }, i) => {
    return `${compared(`stored.${name(columns[i] ?? '')}`)} = ${compared(`given.v${i}`)}`;
  });
  const exists = `EXISTS (SELECT 1 FROM ${sql.table} AS stored WHERE ${equal.join(' AND ')})`;
  return { text: `SELECT nth FROM ${text} AS given WHERE ${isThere ? '' : 'NOT '}${exists}`, values };
}
