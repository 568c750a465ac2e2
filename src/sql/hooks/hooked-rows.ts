import type { Caller } from '@portico/transport';
import { type MaybePromise, TimeSlice } from '../../core/scheduler.ts';
import { codecOf } from '../../relations/codecs.ts';
import type { ImportPosition } from '../../relations/import.ts';
import type { Relation } from '../../relations/relation.ts';
import type { Condition } from '../../relations/rows/conditions.ts';
import type { RowExports } from '../../relations/rows/row-exports.ts';
import type { RowLists } from '../../relations/rows/row-lists.ts';
import {
  type CreateOnceOutcome,
  type ImportedRows,
  type ImportRule,
  type RowConflict,
  type RowKey,
  type RowPatch,
  type RowStore,
  type RowStores,
  RowsRefusedError,
  type RowValues,
  TooManyRowsError,
} from '../../relations/rows/rows.ts';
import {
  type PutColumns,
  type PutRule,
  type RowOutcome,
  type RowWrite,
  type StoredRow,
  WriteRefusedError,
  writeOne,
} from '../../relations/rows/writes.ts';
import type { RowView } from '../../relations/rules/views.ts';
import type { RowAggregates } from '../../relations/selections/aggregates.ts';
import type { IdempotencyKey, WriteCondition } from '../../relations/user.ts';
import type { RowEngine } from '../relations/row-engine.ts';
import type { RowSql } from '../relations/row-sql.ts';
import { HookedTransactions } from './hooked-transactions.ts';
import { CONCURRENT, isHooked, refused } from './prepared-writes.ts';

/** Maximum number of rows that a removal by a filter calls the hook for. */
const MAX_REMOVED = 1_000;
/** How often a removal begins anew because its rows have changed. */
const RETRIES = 3;

/** The stores of relations of which some have hooks. */
export function hookedStores(
  stores: ReadonlyMap<string, RowStore & { readonly sql: RowSql }>,
  engine: RowEngine,
): RowStores {
  const sqlOf = (name: string) => stores.get(name)?.sql;
  const [any] = stores.values();
  if (any === undefined) return stores;
  const views = new WeakMap<RowView, HookedTransactions>();
  const whole = new HookedTransactions({ transactions: any.transactions, engine, sqlOf, view: undefined });
  const transactionsOf = (view: RowView | undefined) => {
    if (view === undefined) return whole;
    const known = views.get(view);
    if (known !== undefined) return known;
    const made = new HookedTransactions({ transactions: any.as(view).transactions, engine, sqlOf, view });
    views.set(view, made);
    return made;
  };
  return new Map(
    Array.from(stores, ([name, rows]) => [
      name,
      new HookedRows(rows, rows.as(undefined), transactionsOf, undefined),
    ]),
  );
}

/** The rows of a relation whose writes run hooks first. Other relations write as the rows below do. */
class HookedRows implements RowStore {
  readonly relation: Relation;
  readonly transactions: HookedTransactions;
  readonly #whole: RowStore;
  readonly #rows: RowStore;
  readonly #transactionsOf: (view: RowView | undefined) => HookedTransactions;
  readonly #viewed = new WeakMap<RowView, RowStore>();

  /** `rows` are those of `whole` as a view shows them. */
  constructor(
    whole: RowStore,
    rows: RowStore,
    transactionsOf: (view: RowView | undefined) => HookedTransactions,
    view: RowView | undefined,
    caller?: Caller,
  ) {
    this.relation = rows.relation;
    this.#whole = whole;
    this.#rows = rows;
    this.#transactionsOf = transactionsOf;
    this.transactions = transactionsOf(view).by(caller);
  }

  get lists(): RowLists {
    return this.#rows.lists;
  }

  get exports(): RowExports {
    return this.#rows.exports;
  }

  get aggregates(): RowAggregates {
    return this.#rows.aggregates;
  }

  as(view: RowView | undefined, caller?: Caller): RowStore {
    if (caller !== undefined)
      return new HookedRows(this.#whole, this.#whole.as(view), this.#transactionsOf, view, caller);
    if (view === undefined) return this;
    const known = this.#viewed.get(view);
    if (known !== undefined) return known;
    const made = new HookedRows(this.#whole, this.#whole.as(view), this.#transactionsOf, view);
    this.#viewed.set(view, made);
    return made;
  }

  read(key: RowKey): MaybePromise<StoredRow | undefined> {
    return this.#rows.read(key);
  }

  shows(rows: readonly RowValues[]): MaybePromise<readonly boolean[]> {
    return this.#rows.shows(rows);
  }

  referrersOf(key: RowKey): Promise<readonly string[]> {
    return this.#rows.referrersOf(key);
  }

  beginImport(key: string): Promise<ImportPosition> {
    return this.#rows.beginImport(key);
  }

  async create(rows: readonly RowValues[]): Promise<readonly StoredRow[]> {
    if (!isHooked(this.relation, 'create')) return this.#rows.create(rows);
    const outcomes = await this.transactions.write(rows.map((row) => this.#creation(row)));
    return outcomes.flatMap((outcome) => (outcome.is === 'removed' ? [] : [outcome.row]));
  }

  #creation(row: RowValues): RowWrite {
    return { is: 'create', relation: this.relation.name, row };
  }

  async createOnce(row: RowValues, key: IdempotencyKey): Promise<CreateOnceOutcome> {
    if (!isHooked(this.relation, 'create')) return this.#rows.createOnce(row, key);
    const outcome = await this.transactions.writeOnce([this.#creation(row)], key);
    if (outcome.is !== 'created') return outcome;
    const [stored] = outcome.outcomes;
    if (stored === undefined || stored.is === 'removed') throw new Error('a create returned no row');
    const rowKey = this.transactions.relation(this.relation.name).format.keyOf(stored.row.values);
    return { is: 'created', key: rowKey, row: await this.#whole.read(rowKey) };
  }

  change(key: RowKey, patch: RowPatch, condition: WriteCondition | undefined): Promise<RowOutcome> {
    if (!isHooked(this.relation, 'change')) return this.#rows.change(key, patch, condition);
    return writeOne(this.transactions, { is: 'change', relation: this.relation.name, key, patch, condition });
  }

  put(row: RowValues, rule: PutRule, columns: PutColumns = {}): Promise<RowOutcome> {
    if (!isHooked(this.relation, 'put')) return this.#rows.put(row, rule, columns);
    return writeOne(this.transactions, { is: 'put', relation: this.relation.name, row, rule, ...columns });
  }

  remove(key: RowKey, condition: WriteCondition | undefined): Promise<RowOutcome> {
    if (!isHooked(this.relation, 'remove')) return this.#rows.remove(key, condition);
    return writeOne(this.transactions, { is: 'remove', relation: this.relation.name, key, condition });
  }

  /** Calls the hook for each row that matches, and removes all of them in one transaction. */
  async removeAll(where: Condition, max: number): Promise<number> {
    if (!isHooked(this.relation, 'remove')) return this.#rows.removeAll(where, max);
    const most = Math.min(max, MAX_REMOVED);
    for (let attempt = 0; ; attempt++) {
      const keys = await this.#keysOf(where, most);
      if (keys.length === 0) return 0;
      const relation = this.relation.name;
      try {
        await this.transactions.write(
          keys.map((key) => ({ is: 'remove', relation, key, condition: undefined })),
        );
        return keys.length;
      } catch (error) {
        if (!(error instanceof WriteRefusedError) || attempt === RETRIES) throw error;
      }
    }
  }

  /** The keys of the rows that match. Fails with TooManyRowsError. */
  async #keysOf(where: Condition, most: number): Promise<readonly RowKey[]> {
    const { columns, key } = this.relation;
    const indexes = key.map((name) => columns.findIndex((column) => column.name === name));
    const order = indexes.flatMap((i) => {
      const column = columns[i];
      return column === undefined ? [] : [{ path: [], column, descending: false }];
    });
    const shape = { where, order, fields: indexes };
    const found: RowKey[] = [];
    for (let next: RowKey | undefined; ; ) {
      const page = await this.#rows.lists.page({
        shape,
        limit: most + 1 - found.length,
        next,
        backwards: false,
      });
      for (const row of JSON.parse(`[${page.json}]`) as readonly Readonly<Record<string, unknown>>[]) {
        found.push(
          key.map((name, nth) => {
            const column = columns[indexes[nth] ?? -1];
            const parsed = column && codecOf(column.type).parse(row[name]);
            return parsed !== undefined && 'value' in parsed ? parsed.value : null;
          }),
        );
      }
      if (found.length > most) throw new TooManyRowsError(most);
      if (!page.more || page.last === undefined) return found;
      next = page.last;
    }
  }

  /** Calls the hook for each row. What it adds cannot be stored with many rows at once. */
  async importRows(rows: readonly RowValues[], rule: ImportRule): Promise<ImportedRows> {
    if (!isHooked(this.relation, 'create')) return this.#rows.importRows(rows, rule);
    const kept: number[] = [];
    const changed: RowValues[] = [];
    const conflicts: RowConflict[] = [];
    const slice = new TimeSlice();
    for (let first = 0; first < rows.length; first += CONCURRENT) {
      const some = rows.slice(first, first + CONCURRENT);
      const found = await Promise.all(some.map((row, i) => this.#imported(row, first + i)));
      for (const [i, each] of found.entries()) {
        if (each.row === undefined) conflicts.push(...each.conflicts);
        else changed[kept.push(first + i) - 1] = each.row;
      }
      if (slice.isOver) await slice.next();
    }
    if (rule.isWhole && conflicts.length > 0) return { keys: [], conflicts };
    const stored = await this.#rows.importRows(changed, rule);
    const keys = new Map(kept.map((at, i) => [at, stored.keys[i]]));
    return {
      keys: rows.map((_, at) => keys.get(at)),
      conflicts: [...conflicts, ...stored.conflicts.map((each) => ({ ...each, row: kept[each.row] ?? 0 }))],
    };
  }

  /** A row of an import as its hook wants it, or why it is refused. */
  async #imported(
    row: RowValues,
    at: number,
  ): Promise<{ readonly row?: RowValues; readonly conflicts: readonly RowConflict[] }> {
    const until = (timeout: number) => performance.now() + timeout;
    try {
      const [own, ...added] = await this.transactions.preparation([this.#creation(row)], until).prepare();
      if (added.length > 0) {
        const detail = `an import cannot store the writes that the hook of ${this.relation.name} adds; send the row in an array`;
        throw refused(at, 'HOOK_REFUSED', detail);
      }
      return { row: (own?.write.is === 'create' ? own.write.row : row) as RowValues, conflicts: [] };
    } catch (error) {
      if (!(error instanceof RowsRefusedError)) throw error;
      return { conflicts: error.conflicts.map((each) => ({ ...each, row: at })) };
    }
  }
}
