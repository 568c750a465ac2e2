import type { Reference, Relation } from '../../relations/relation.ts';
import { holds, isOfRowAlone } from '../../relations/rows/changes.ts';
import type { Condition } from '../../relations/rows/conditions.ts';
import type { RowValues } from '../../relations/rows/rows.ts';
import { EarlierValue, type Given } from '../../relations/rows/writes.ts';
import { ALL, allOf, anyOf, isAll, isNone } from '../../relations/rules/rule-trees.ts';
import type { RelationView, RowView } from '../../relations/rules/views.ts';
import type { BoundText } from '../dialects/row-dialects.ts';
import { conditionAt } from '../relations/conditions-sql.ts';
import type { RowEngine } from '../relations/row-engine.ts';
import type { RowSql } from '../relations/row-sql.ts';

/** The alias of given rows. */
const ROW = 'r';
/** Rows per statement, fewer if the condition is on many columns. */
const SLICE = { rows: 1_000, values: 20_000 } as const;

/** The columns of the row itself on which a condition depends. */
export function columnsIn(condition: Condition): ReadonlySet<string> {
  switch (condition.is) {
    case 'and':
    case 'or':
      return new Set(condition.all.flatMap((each) => [...columnsIn(each)]));
    case 'not':
      return columnsIn(condition.condition);
    case 'some':
    case 'none':
    case 'every':
      return new Set(condition.on.map(([here]) => here));
    default:
      return new Set([condition.column.name]);
  }
}

/** Whether a condition crosses to rows of a relation. */
export function crossesTo(condition: Condition, { name: relation }: Pick<Relation, 'name'>): boolean {
  switch (condition.is) {
    case 'and':
    case 'or':
      return condition.all.some((each) => crossesTo(each, { name: relation }));
    case 'not':
      return crossesTo(condition.condition, { name: relation });
    case 'some':
    case 'none':
    case 'every':
      return condition.relation.name === relation || crossesTo(condition.condition, { name: relation });
    default:
      return false;
  }
}

/** The statement that has a row if given values meet a condition. */
export function givenMeets(sql: RowSql, row: readonly Given[], condition: Condition): BoundText {
  const columns = [...columnsIn(condition)].map((column) => sql.indexOf(column));
  const values = columns.map((column) => sql.bindAt(column, row[column]));
  const selected = columns.map((column, i) => `${sql.parameterAt(i + 1, column)} AS ${sql.nameAt(column)}`);
  const { text, values: more } = conditionAt(condition, ROW, sql.dialect)(values.length + 1);
  const given = `(SELECT ${selected.length === 0 ? '1 AS one' : selected.join(', ')}) AS ${ROW}`;
  return { text: `SELECT 1 FROM ${given} WHERE ${text}`, values: [...values, ...more] };
}

/** Which of some rows meet a condition by their values; other rows are as they are now. */
export async function rowsThatMeet(
  engine: Pick<RowEngine, 'readLatest'>,
  sql: RowSql,
  rows: readonly RowValues[],
  condition: Condition,
): Promise<readonly boolean[]> {
  if (isAll(condition) || isNone(condition)) return rows.map(() => isAll(condition));
  if (isOfRowAlone(condition)) return rows.map((row) => meetsAlone(sql, row, condition));
  const columns = [...columnsIn(condition)].map((column) => sql.indexOf(column));
  const size = Math.min(SLICE.rows, Math.floor(SLICE.values / (columns.length + 1)));
  const found = new Set<number>();
  for (let at = 0; at < rows.length; at += size) {
    const slice = rows.slice(at, at + size);
    const statement = searchOf(sql, slice, columns, condition);
    for (const [nth] of await engine.readLatest(statement)) found.add(at + Number(nth));
  }
  return rows.map((_, i) => found.has(i));
}

function searchOf(
  sql: RowSql,
  rows: readonly RowValues[],
  columns: readonly number[],
  condition: Condition,
): BoundText {
  const given = sql.dialect.givenRows(
    columns.map((column) => sql.storageAt(column).type),
    columns.map((column) => rows.map((row) => sql.bindAt(column, row[column]))),
  );
  const selected = columns.map((column, i) => `v${i} AS ${sql.nameAt(column)}`);
  const { text, values } = conditionAt(condition, ROW, sql.dialect)(given.values.length + 1);
  return {
    text: `SELECT nth FROM (SELECT ${['nth', ...selected].join(', ')} FROM ${given.text} AS given) AS ${ROW} WHERE ${text}`,
    values: [...given.values, ...values],
  };
}

/** Whether a row meets a condition on nothing but itself. */
export function meetsAlone(sql: RowSql, row: RowValues, condition: Condition): boolean {
  return holds(condition, (column) => row[sql.indexOf(column.name)] ?? null);
}

/** The condition that a reference leads to a row that the caller may read; a claim may lead to any. */
export function referenceSeen(
  view: RowView,
  { relation, set }: RelationView,
  { columns, targetColumns }: Reference,
  target: Relation | undefined,
): Condition {
  const found = target === undefined ? ALL : view.of(target).found;
  const own = columns.flatMap((name) => relation.columns.filter((each) => each.name === name));
  const isSet = own.some((column) => set.has(relation.columns.indexOf(column)));
  if (target === undefined || isSet || isAll(found)) return ALL;
  const on = columns.map((column, i) => [column, targetColumns[i] ?? ''] as const);
  return anyOf(...own.map((column): Condition => ({ is: 'null', column, isNull: true })), {
    is: 'some',
    relation: target,
    on,
    isReference: true,
    condition: found,
  });
}

/**
 * The condition that the references of a new row lead to rows that the caller may read: what a reference is refused for
 * must not tell whether there is a row. What an earlier write stores is that of the caller.
 */
export function referencesSeen(
  view: RowView,
  own: RelationView,
  row: readonly Given[],
  targetOf: (name: string) => Relation | undefined,
): Condition {
  const isEarlier = ({ columns }: Reference) =>
    own.relation.columns.some(({ name }, i) => columns.includes(name) && row[i] instanceof EarlierValue);
  return allOf(
    ...own.relation.references.map((reference) =>
      isEarlier(reference) ? ALL : referenceSeen(view, own, reference, targetOf(reference.to)),
    ),
  );
}

/** Whether the caller may read all rows to which rows of a relation can refer. */
export function seesReferences(view: RowView, { references }: Relation): boolean {
  return references.every(({ to }) => isAll(view.of({ name: to }).found));
}
