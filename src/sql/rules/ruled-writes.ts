import type { Column, Relation } from '../../relations/relation.ts';
import type { Condition } from '../../relations/rows/conditions.ts';
import { EarlierValue, type Given, type RowWrite } from '../../relations/rows/writes.ts';
import { ALL, allOf, anyOf, isAll, NONE } from '../../relations/rules/rule-trees.ts';
import type { RelationView, RowView } from '../../relations/rules/views.ts';
import type { BoundText } from '../dialects/row-dialects.ts';
import { asksFirst } from '../existing/writes.ts';
import { conditionAt } from '../relations/conditions-sql.ts';
import type { Addition, RowSql } from '../relations/row-sql.ts';
import { columnsIn, crossesTo, referencesSeen } from './judge.ts';

/** Stands for a column of the row that the insert of a write has stored; null if it has stored none. */
export class InsertedValue extends EarlierValue {}

/** What rules demand of a write, as conditions on the row. Undefined for a write without rules. */
export interface RuledWrite {
  /** The row that is there: whether the caller finds it, whether it may write it, and all that the write needs. */
  readonly found: Condition;
  readonly may: Condition;
  readonly before: Condition;
  /** The row that is new, or that was changed. */
  readonly created: Condition;
  readonly changed: Condition;
  /** Its references. */
  readonly references: Condition;
}

type WhichRelation = (name: string) => Relation | undefined;

/** What the rules of a view demand of a write. */
export function ruledWrite(
  view: RowView | undefined,
  sql: RowSql,
  write: RowWrite,
  targetOf: WhichRelation,
): RuledWrite | undefined {
  if (view === undefined) return undefined;
  const { relation } = sql;
  const own = view.of(relation);
  const { found } = own;
  switch (write.is) {
    case 'create': {
      const references = referencesSeen(view, own, write.row, targetOf);
      return { ...ANY, found, created: own.create, references };
    }
    case 'remove': {
      const may = allOf(found, own.delete);
      return { ...ANY, found, may, before: may };
    }
    case 'change': {
      const row = relation.columns.map((_, i) => write.patch.get(i)) as readonly Given[];
      const may = allOf(found, own.update);
      const before = allOf(may, referencesKept(view, own, row, targetOf));
      const isConcerned = changes(relation, own.update, [...write.patch.keys()]);
      return { ...ANY, found, may, before, changed: isConcerned ? own.update : ALL };
    }
    case 'upsert':
    case 'put': {
      const { row, same = [] } = write;
      const may = allOf(found, own.update, unchanged(relation, row, same));
      const isReplaced = write.is === 'put' && !write.rule.creates;
      const before = isReplaced ? allOf(may, referencesKept(view, own, row, targetOf)) : may;
      return {
        found,
        may,
        before,
        created: own.create,
        changed: own.update,
        references: isReplaced ? ALL : referencesSeen(view, own, row, targetOf),
      };
    }
  }
}

const ANY = { may: ALL, before: ALL, created: ALL, changed: ALL, references: ALL } as const;

/** Whether a change of columns can change whether the row meets a condition. */
function changes(relation: Relation, condition: Condition, indexes: readonly number[]): boolean {
  const columns = columnsIn(condition);
  const isIn = indexes.some((i) => columns.has(relation.columns[i]?.name ?? ''));
  return isIn || crossesTo(condition, relation);
}

/** The condition that columns of the row have the given values. */
function unchanged({ columns }: Relation, row: readonly Given[], same: readonly number[]): Condition {
  return allOf(
    ...same.map((i): Condition => {
      const column = columns[i];
      const value = row[i] ?? null;
      // Documents are not compared, and what an earlier write stores is not known yet.
      if (column === undefined || column.type.kind === 'json' || value instanceof EarlierValue) return NONE;
      return value === null ? { is: 'null', column, isNull: true } : { is: 'eq', column, value };
    }),
  );
}

/**
 * The condition that the row refers to given rows already, or that the caller may read these. The other columns of a
 * reference of which only some are given are those of the row.
 */
function referencesKept(
  view: RowView,
  { relation }: RelationView,
  row: readonly Given[],
  targetOf: WhichRelation,
): Condition {
  return allOf(
    ...relation.references.map(({ to, columns, targetColumns }) => {
      const target = targetOf(to);
      const found = target === undefined ? ALL : view.of(target).found;
      if (target === undefined || isAll(found)) return ALL;
      const kept: Condition[] = [];
      const given: Condition[] = [];
      const on: (readonly [Column, string])[] = [];
      for (const [i, name] of columns.entries()) {
        const at = relation.columns.findIndex((each) => each.name === name);
        const [own, targetName = ''] = [relation.columns[at], targetColumns[i]];
        const column = target.columns.find((each) => each.name === targetName);
        const value = row[at];
        if (own === undefined || column === undefined || value === null || value instanceof EarlierValue)
          return ALL;
        if (value === undefined) on.push([own, targetName]);
        else {
          kept.push({ is: 'eq', column: own, value });
          given.push({ is: 'eq', column, value });
        }
      }
      if (given.length === 0) return ALL;
      const isUnset = on.map(([column]): Condition => ({ is: 'null', column, isNull: true }));
      const condition = allOf(...given, found);
      return anyOf(allOf(...kept), ...isUnset, {
        is: 'some',
        relation: target,
        on: on.map(([{ name }, targetName]) => [name, targetName] as const),
        isReference: true,
        condition,
      });
    }),
  );
}

/** The statement that has a row if one meets a condition. */
export function anyRow(sql: RowSql, where: Condition): BoundText {
  const { text, values } = conditionAt(where, sql.table, sql.dialect)(1);
  return { text: `SELECT 1 FROM ${sql.table} WHERE ${text} LIMIT 1`, values };
}

/** A condition as a part of a statement on the rows of a table; undefined if every row meets it. */
export function additionOf(sql: RowSql, condition: Condition | undefined): Addition | undefined {
  if (condition === undefined || isAll(condition)) return undefined;
  return conditionAt(condition, sql.table, sql.dialect);
}

/** The statement that has a row if the stored row meets what rules demand of it; undefined if any does. */
export function afterWrite(
  sql: RowSql,
  write: RowWrite,
  rules: RuledWrite,
  { nth, version }: { readonly nth: number; readonly version: number },
): BoundText | undefined {
  const stored = sql.relation.key.map((name) => new EarlierValue(nth, sql.indexOf(name)));
  const at = (condition: Condition) => conditionAt(condition, sql.table, sql.dialect);
  if (write.is === 'remove') return undefined;
  const { created, changed, references } = rules;
  if (write.is === 'create')
    return meets(sql, stored, at(allOf(created, references)), isAll(allOf(created, references)));
  if (write.is === 'change' || (write.is === 'put' && !write.rule.creates))
    return meets(sql, stored, at(changed), isAll(changed));
  if (isAll(created) && isAll(changed) && isAll(references)) return undefined;
  const isFound = write.is === 'upsert' && write.merged === undefined;
  const either: Addition = (first) => {
    const values: BoundText['values'][number][] = [];
    let isNew: string;
    if (isFound) isNew = isInserted(sql, nth, first, values);
    else if (asksFirst(sql, write)) isNew = `${isInserted(sql, nth, first, values)} IS NOT TRUE`;
    else if (!sql.keepsVersion) isNew = '1 = 1';
    else {
      values.push(version);
      isNew = `${sql.version} = ${sql.dialect.parameter(first, 'bigint')}`;
    }
    const one = at(allOf(created, references))(first + values.length);
    values.push(...one.values);
    // A row that was found stays as it is.
    const other = at(isFound ? ALL : allOf(changed, references))(first + values.length);
    values.push(...other.values);
    return { text: `(CASE WHEN ${isNew} THEN ${one.text} ELSE ${other.text} END)`, values };
  };
  return sql.meets(stored, either);
}

function meets(sql: RowSql, key: readonly Given[], also: Addition, isSure: boolean): BoundText | undefined {
  return isSure ? undefined : sql.meets(key, also);
}

/** The condition that a row is the one that the insert of the nth write has stored, or that the caller finds it. */
export function foundOrInserted(sql: RowSql, found: Condition, nth: number): Addition | undefined {
  if (isAll(found)) return undefined;
  return (first) => {
    const values: BoundText['values'][number][] = [];
    const isNew = isInserted(sql, nth, first, values);
    const other = conditionAt(found, sql.table, sql.dialect)(first + values.length);
    return { text: `(${isNew} OR ${other.text})`, values: [...values, ...other.values] };
  };
}

/** Whether the row is that of the first statement of the nth write: its insert, or a look at the stored row before it. */
function isInserted(sql: RowSql, nth: number, first: number, values: BoundText['values'][number][]): string {
  const all = sql.relation.key.map((name, i) => {
    const column = sql.indexOf(name);
    values.push(new InsertedValue(nth, column));
    return `${sql.nameAt(column)} = ${sql.parameterAt(first + i, column)}`;
  });
  return `(${all.join(' AND ')})`;
}
