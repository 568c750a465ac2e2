import { type MaybePromise, whenReady } from '../../core/scheduler.ts';
import type { ImportPosition } from '../../relations/import.ts';
import type { Relation } from '../../relations/relation.ts';
import { isOfRowAlone } from '../../relations/rows/changes.ts';
import type { Condition } from '../../relations/rows/conditions.ts';
import type { RowOrder } from '../../relations/rows/orders.ts';
import type { RowExports } from '../../relations/rows/row-exports.ts';
import type { RowListShape, RowLists } from '../../relations/rows/row-lists.ts';
import {
  type CreateOnceOutcome,
  type ImportedRows,
  type ImportRule,
  type RowConflict,
  type RowKey,
  type RowPatch,
  type RowStore,
  RowsRefusedError,
  type RowValues,
} from '../../relations/rows/rows.ts';
import {
  type PutColumns,
  type PutRule,
  type RowOutcome,
  type RowTransactions,
  type RowWrite,
  type StoredRow,
  writeOne,
} from '../../relations/rows/writes.ts';
import { ALL, allOf, isAll, isNone, NONE, noneOf } from '../../relations/rules/rule-trees.ts';
import type { RelationView, RowView } from '../../relations/rules/views.ts';
import type { RowAggregates } from '../../relations/selections/aggregates.ts';
import type { NestedRows, SelectedMember, Selection } from '../../relations/selections/selection.ts';
import type { IdempotencyKey, WriteCondition } from '../../relations/user.ts';
import type { RowEngine } from '../relations/row-engine.ts';
import type { RowSql } from '../relations/row-sql.ts';
import { columnsIn, meetsAlone, referenceSeen, rowsThatMeet, seesReferences } from './judge.ts';
import { notAllowed } from './rule-refusals.ts';
import { additionOf } from './ruled-writes.ts';

/** The rows of a relation, and what their statements need. */
interface WholeRows {
  readonly rows: RowStore;
  readonly sql: RowSql;
  readonly engine: RowEngine;
  /** The transactions of the caller. */
  readonly transactions: RowTransactions;
  /** A relation of the declaration. */
  relationOf(name: string): Relation | undefined;
  /** Removes rows like `RowStore.removeAll`, but none if one of those that match may not be removed. */
  removeAll(where: Condition, max: number, may: Condition): Promise<number>;
}

/**
 * The rows of a relation as a caller may read and write them. Every read has the caller's condition; writes that depend on
 * rows are transactions, which judge the row before and after. What scopes alone decide costs no statement.
 */
export class ViewedRows implements RowStore {
  readonly relation: Relation;
  readonly lists: RowLists;
  readonly exports: RowExports;
  readonly aggregates: RowAggregates;
  readonly transactions: RowTransactions;
  readonly #selections = new WeakMap<Selection, Selection>();
  readonly #whole: WholeRows;
  readonly #view: RowView;
  readonly #own: RelationView;

  constructor(whole: WholeRows, view: RowView) {
    const { rows, transactions } = whole;
    this.relation = rows.relation;
    this.#whole = whole;
    this.#view = view;
    this.#own = view.of(rows.relation);
    this.transactions = transactions;
    this.lists = this.#listsOf(rows.lists);
    this.aggregates = {
      read: (aggregation) => rows.aggregates.read({ ...aggregation, where: this.#where(aggregation.where) }),
    };
    this.exports = {
      lastKey: () => rows.exports.lastKey(),
      page: (selection, range) =>
        rows.exports.page(
          { ...selection, where: this.#where(selection.where), fields: this.#fields(selection.fields) },
          range,
        ),
    };
  }

  /** A condition of the caller, only on rows that it may read. */
  #where(condition: Condition): Condition {
    return allOf(this.#view.guarded(condition), this.#own.read);
  }

  #fields(fields: readonly number[] | undefined): readonly number[] | undefined {
    const { readable } = this.#own;
    return readable === undefined ? fields : (fields?.filter((i) => readable.includes(i)) ?? readable);
  }

  #listsOf(lists: RowLists): RowLists {
    // A list keeps what its pages have in common with their shape.
    const shapes = new WeakMap<RowListShape, RowListShape>();
    const shapeOf = (shape: RowListShape) => {
      const known = shapes.get(shape);
      if (known !== undefined) return known;
      const made: RowListShape = {
        where: this.#where(shape.where),
        fields: this.#fields(shape.fields),
        order: this.#guarded(this.relation, shape.order),
        ...(shape.selection !== undefined && { selection: this.#selectionOf(shape.selection) }),
      };
      shapes.set(shape, made);
      return made;
    };
    return {
      read: (key, selection) => lists.read(key, this.#selectionOf(selection), this.#own.read),
      page: (request) => lists.page({ ...request, shape: shapeOf(request.shape) }),
      count: (where) => lists.count(this.#where(where)),
    };
  }

  #guarded(relation: Relation, order: readonly RowOrder[]): readonly RowOrder[] {
    return order.map((term) => {
      const guards = this.#view.guards(relation, term.path);
      return guards === undefined ? term : { ...term, guards };
    });
  }

  /** A selection with the columns, and the embedded rows, that the caller may read; the same for the same. */
  #selectionOf(selection: Selection): Selection {
    const known = this.#selections.get(selection);
    if (known !== undefined) return known;
    const { relation, members } = selection;
    const { readable } = this.#view.of(relation);
    const made: Selection = {
      relation,
      members: members.flatMap((member): readonly SelectedMember[] => {
        if (member.is === 'column') return readable?.includes(member.column) === false ? [] : [member];
        return member.is === 'rows' ? [{ ...member, rows: this.#nested(member.rows) }] : [member];
      }),
    };
    this.#selections.set(selection, made);
    return made;
  }

  #nested(rows: NestedRows): NestedRows {
    const { relation, through } = rows.link;
    // Which rows connect is not asked one by one.
    const connects = through === undefined || isAll(this.#view.of(through.relation).read) ? ALL : NONE;
    return {
      ...rows,
      selection: this.#selectionOf(rows.selection),
      where: allOf(this.#view.guarded(rows.where), this.#view.of(relation).read, connects),
      order: this.#guarded(relation, rows.order),
    };
  }

  as(view: RowView | undefined): RowStore {
    return this.#whole.rows.as(view);
  }

  read(key: RowKey): MaybePromise<StoredRow | undefined> {
    const { engine, sql, rows } = this.#whole;
    const { read } = this.#own;
    if (isAll(read)) return rows.read(key);
    return whenReady(engine.read(sql.read(key, additionOf(sql, read))), ([row]) => row && sql.row(row));
  }

  shows(rows: readonly RowValues[]): MaybePromise<readonly boolean[]> {
    const { read } = this.#own;
    if (isAll(read) || isNone(read)) return rows.map(() => isAll(read));
    return rowsThatMeet(this.#whole.engine, this.#whole.sql, rows, read);
  }

  async create(rows: readonly RowValues[]): Promise<readonly StoredRow[]> {
    if (this.#judgesAlone(rows)) {
      this.#requireCreatable(rows);
      return this.#whole.rows.create(rows);
    }
    const outcomes = await this.transactions.write(rows.map((row) => this.#creation(row)));
    return outcomes.flatMap((outcome) => (outcome.is === 'removed' ? [] : [outcome.row]));
  }

  async createOnce(row: RowValues, key: IdempotencyKey): Promise<CreateOnceOutcome> {
    // A transaction for every caller: a key is kept in another way without.
    const outcome = await this.transactions.writeOnce([this.#creation(row)], key);
    if (outcome.is !== 'created') return outcome;
    const [stored] = outcome.outcomes;
    if (stored === undefined || stored.is === 'removed') throw new Error('a create returned no row');
    const { values } = stored.row;
    const { sql } = this.#whole;
    const rowKey = this.relation.key.map((name) => values[sql.indexOf(name)] ?? null);
    return { is: 'created', key: rowKey, row: await this.#whole.rows.read(rowKey) };
  }

  #creation(row: RowValues): RowWrite {
    return { is: 'create', relation: this.relation.name, row };
  }

  /** Whether the values of new rows decide whether the caller may create them. */
  #judgesAlone(rows: readonly RowValues[]): boolean {
    const { create } = this.#own;
    if (!isOfRowAlone(create) || !seesReferences(this.#view, this.relation)) return false;
    const { sql } = this.#whole;
    const { serialName } = sql;
    if (serialName === undefined || !columnsIn(create).has(serialName)) return true;
    return rows.every((row) => sql.givesSerial(row));
  }

  #requireCreatable(rows: readonly RowValues[]): void {
    const { create } = this.#own;
    const refused = rows.flatMap((row, i): readonly RowConflict[] =>
      meetsAlone(this.#whole.sql, row, create) ? [] : [{ code: 'NOT_ALLOWED', row: i }],
    );
    const [first, ...others] = refused;
    if (first !== undefined) throw new RowsRefusedError([first, ...others]);
  }

  change(key: RowKey, patch: RowPatch, condition: WriteCondition | undefined): Promise<RowOutcome> {
    if (this.#isFree(this.#own.update)) return this.#whole.rows.change(key, patch, condition);
    return writeOne(this.transactions, { is: 'change', relation: this.relation.name, key, patch, condition });
  }

  put(row: RowValues, rule: PutRule, columns: PutColumns = {}): Promise<RowOutcome> {
    const { create, update } = this.#own;
    const isWhole = columns.replaced === undefined && this.#isFree(create) && this.#isFree(update);
    if (isWhole) return this.#whole.rows.put(row, rule);
    return writeOne(this.transactions, { is: 'put', relation: this.relation.name, row, rule, ...columns });
  }

  remove(key: RowKey, condition: WriteCondition | undefined): Promise<RowOutcome> {
    const { inverses } = this.relation;
    const seesReferrers = inverses.every((inverse) => isAll(this.#view.of({ name: inverse.relation }).read));
    if (seesReferrers && this.#isFree(this.#own.delete)) return this.#whole.rows.remove(key, condition);
    return writeOne(this.transactions, { is: 'remove', relation: this.relation.name, key, condition });
  }

  /** Whether neither the row nor what it refers to decides whether the caller may write it. */
  #isFree(condition: Condition): boolean {
    return isAll(condition) && isAll(this.#own.found) && seesReferences(this.#view, this.relation);
  }

  removeAll(where: Condition, max: number): Promise<number> {
    const { delete: may } = this.#own;
    if (isNone(may)) throw notAllowed(0);
    return this.#whole.removeAll(this.#where(where), max, may).catch((error: unknown) => {
      if (!(error instanceof RowsRefusedError)) throw error;
      const [first, ...others] = error.conflicts.map((each) =>
        each.code === 'REFERENCED' && each.by !== undefined && !isAll(this.#view.of({ name: each.by }).read)
          ? { ...each, by: undefined }
          : each,
      );
      throw first === undefined ? error : new RowsRefusedError([first, ...others]);
    });
  }

  async referrersOf(key: RowKey): Promise<readonly string[]> {
    const all = await this.#whole.rows.referrersOf(key);
    return all.filter((name) => isAll(this.#view.of({ name }).read));
  }

  async importRows(rows: readonly RowValues[], rule: ImportRule): Promise<ImportedRows> {
    const { engine, sql, rows: whole } = this.#whole;
    const allowed = await rowsThatMeet(engine, sql, rows, this.#own.create);
    const conflicts: RowConflict[] = [];
    for (const [row, isAllowed] of allowed.entries())
      if (!isAllowed) conflicts.push({ code: 'NOT_ALLOWED', row });
    for (const reference of this.relation.references) {
      const target = this.#whole.relationOf(reference.to);
      const seen = referenceSeen(this.#view, this.#own, reference, target);
      const met = await rowsThatMeet(engine, sql, rows, seen);
      for (const [row, isMet] of met.entries()) {
        if (isMet || allowed[row] !== true) continue;
        conflicts.push({ code: 'REFERENCE_MISSING', row, columns: reference.columns, to: reference.to });
      }
    }
    if (conflicts.length === 0) return whole.importRows(rows, rule);
    if (rule.isWhole) return { keys: [], conflicts };
    const refused = new Set(conflicts.map(({ row }) => row));
    const kept = [...rows.keys()].filter((row) => !refused.has(row));
    const stored = await whole.importRows(
      kept.map((row) => rows[row] ?? []),
      rule,
    );
    const keys = new Map(kept.map((row, i) => [row, stored.keys[i]]));
    return {
      keys: rows.map((_, row) => keys.get(row)),
      conflicts: [...conflicts, ...stored.conflicts.map((each) => ({ ...each, row: kept[each.row] ?? 0 }))],
    };
  }

  beginImport(key: string): Promise<ImportPosition> {
    return this.#whole.rows.beginImport(key);
  }
}

/** The rows that match a removal and may not be removed. */
export function keptFromRemoval(where: Condition, may: Condition): Condition | undefined {
  return isAll(may) ? undefined : allOf(where, noneOf(may));
}
