import { type MaybePromise, whenReady } from '../../core/scheduler.ts';
import type { ImportPosition } from '../../relations/import.ts';
import { type Relation, USER_COLUMNS, USERS, type Value } from '../../relations/relation.ts';
import type { Condition, Relations } from '../../relations/rows/conditions.ts';
import type { RowExports } from '../../relations/rows/row-exports.ts';
import {
  type CreateOnceOutcome,
  type ImportedRows,
  type ImportRule,
  type RowConflict,
  RowFormat,
  type RowKey,
  type RowPatch,
  type RowStore,
  type RowStores,
  RowsRefusedError,
  type RowValues,
  TooManyRowsError,
} from '../../relations/rows/rows.ts';
import {
  type PutRule,
  type RowOutcome,
  type RowWrite,
  replacedIn,
  type StoredRow,
  type WriteOutcome,
  writeOne,
} from '../../relations/rows/writes.ts';
import { allOf } from '../../relations/rules/rule-trees.ts';
import type { RowView } from '../../relations/rules/views.ts';
import type { RowAggregates } from '../../relations/selections/aggregates.ts';
import type { IdempotencyKey, WriteCondition } from '../../relations/user.ts';
import type { DatabaseUserStore } from '../../relations/user-stores.ts';
import type { BoundText } from '../dialects/row-dialects.ts';
import { requireTable } from '../existing/writes.ts';
import { hookedStores } from '../hooks/hooked-rows.ts';
import { storedKey } from '../inbox-sql.ts';
import type { UserIndexOptions } from '../list-sql.ts';
import { notAllowed } from '../rules/rule-refusals.ts';
import { anyRow } from '../rules/ruled-writes.ts';
import { keptFromRemoval, ViewedRows } from '../rules/viewed-rows.ts';
import { AggregateSql } from '../selections/aggregate-sql.ts';
import { USER_QUERIES } from '../stores/user-queries.ts';
import { comparable } from './row-checks.ts';
import { type RowEngine, type Rows, UnitError } from './row-engine.ts';
import { RowImports } from './row-imports.ts';
import { RowListSql } from './row-lists.ts';
import { RowSql } from './row-sql.ts';
import { RowTexts } from './row-texts.ts';
import { RowUnits } from './row-transactions.ts';

/** How often a write is repeated if its conflict cannot be found any more. */
const RETRIES = 3;
/** How many conflicts a refusal names. */
const MAX_CONFLICTS = 100;

/** The stores of all relations of a declaration, by name. */
export function rowStores(relations: readonly Relation[], engine: RowEngine): RowStores {
  const all = new Map<string, RelationRows>();
  const byName = new Map(relations.map((relation) => [relation.name, relation]));
  const transactions = new RowUnits(engine, all);
  for (const relation of relations) {
    all.set(relation.name, new RelationRows(relation, engine, transactions, byName, all));
  }
  return relations.some(({ before }) => before !== undefined) ? hookedStores(all, engine) : all;
}

/** Relations in which users have the indexes of an installation, besides those of the declaration. */
export function withUserIndexes(
  relations: readonly Relation[],
  options: UserIndexOptions | undefined,
): readonly Relation[] {
  const { search = 'none', uniqueEmail = false } = options ?? {};
  const keys = search === 'none' ? [] : [['name'], ['email']];
  return relations.map((relation) => {
    if (relation.name !== USERS) return relation;
    const unique = uniqueEmail ? [['email'], ...relation.unique] : relation.unique;
    return { ...relation, unique, indexes: [...keys, ...relation.indexes] };
  });
}

/** Whether writes to relations can change users, by added columns or by the paths of a relation. */
export function changesUsers(relations: readonly Relation[]): boolean {
  return relations.some(
    ({ name, columns, shown }) =>
      name === USERS && (shown === undefined || columns.length > USER_COLUMNS.length),
  );
}

/** Gives the store of users their rows; returns the stores of the other relations. */
export function serveRelations(stores: RowStores, users: DatabaseUserStore): RowStores {
  users.rows = stores.get(USERS);
  return new Map([...stores].filter(([name]) => name !== USERS));
}

const referencedBy = (by: string | undefined) => ({ code: 'REFERENCED', row: 0, by }) as const;

type Written<Is extends RowWrite['is']> = Is extends unknown
  ? Omit<Extract<RowWrite, { readonly is: Is }>, 'relation'>
  : never;

/** The rows of the outcomes of writes. */
function storedIn(outcomes: readonly WriteOutcome[]): readonly StoredRow[] {
  return outcomes.flatMap((outcome) => (outcome.is === 'removed' ? [] : [outcome.row]));
}

/** The rows of a relation, as far as both engines do the same. */
class RelationRows implements RowStore {
  readonly relation: Relation;
  readonly format: RowFormat;
  readonly sql: RowSql;
  readonly lists: RowListSql;
  readonly exports: RowExports;
  readonly aggregates: RowAggregates;
  readonly #imports: RowImports;
  readonly transactions: RowUnits;
  readonly #relations: Relations;
  readonly #viewed = new WeakMap<RowView, RowStore>();
  readonly #engine: RowEngine;
  readonly #all: ReadonlyMap<string, RelationRows>;
  /** The columns that a put replaces: all but the key. */
  readonly #replaced: readonly number[];

  constructor(
    relation: Relation,
    engine: RowEngine,
    transactions: RowUnits,
    relations: Relations,
    all: ReadonlyMap<string, RelationRows>,
  ) {
    this.relation = relation;
    this.format = new RowFormat(relation);
    this.sql = new RowSql(relation, engine.dialect);
    this.lists = new RowListSql(this.sql, engine, relations);
    this.exports = new RowTexts(this.sql, engine);
    this.aggregates = new AggregateSql(this.sql, engine, this.lists);
    this.#imports = new RowImports({ sql: this.sql, target: (to) => all.get(to)?.sql }, engine);
    this.transactions = transactions;
    this.#relations = relations;
    this.#engine = engine;
    this.#all = all;
    this.#replaced = replacedIn(relation);
  }

  as(view: RowView | undefined): RowStore {
    if (view === undefined) return this;
    const known = this.#viewed.get(view);
    if (known !== undefined) return known;
    const made = new ViewedRows(
      {
        rows: this,
        sql: this.sql,
        engine: this.#engine,
        transactions: this.transactions.as(view),
        relationOf: (name) => this.#relations.get(name),
        removeAll: (where, max, may) => this.#removeAll(allOf(where, may), max, keptFromRemoval(where, may)),
      },
      view,
    );
    this.#viewed.set(view, made);
    return made;
  }

  shows(rows: readonly RowValues[]): readonly boolean[] {
    return rows.map(() => true);
  }

  read(key: RowKey): MaybePromise<StoredRow | undefined> {
    return whenReady(this.#engine.read(this.sql.read(key)), ([row]) => row && this.sql.row(row));
  }

  #readLatest(key: RowKey): MaybePromise<StoredRow | undefined> {
    return whenReady(this.#engine.readLatest(this.sql.read(key)), ([row]) => row && this.sql.row(row));
  }

  async create(rows: readonly RowValues[]): Promise<readonly StoredRow[]> {
    // What the database adds to a row is known once it is stored.
    if (!this.sql.keepsVersion) return storedIn(await this.transactions.write(rows.map(this.#creation)));
    const version = Date.now();
    const serials = await this.#explained(
      () => this.#engine.insert(this.sql, { rows, version }),
      () => this.#conflictsOf(rows),
    );
    return rows.map((values, i) => ({ values: this.#withSerial(values, serials[i]), version }));
  }

  async createOnce(row: RowValues, { key, ...given }: IdempotencyKey): Promise<CreateOnceOutcome> {
    if (!this.sql.keepsVersion) return this.#createOnce(row, { key, ...given });
    const { claimKey, expireKeys } = USER_QUERIES;
    // The key of the row is kept with the digest, unless the engine assigns it.
    const path = this.format.path(this.format.keyOf(row));
    const fingerprint = `${given.fingerprint} ${path}`;
    const stored = storedKey(key);
    const now = Date.now();
    const isGiven = this.sql.givesSerial(row);
    const after = isGiven ? this.#engine.afterGiven(this.sql) : [];
    const results = await this.#explained(
      () =>
        this.#engine.writeAll([
          [claimKey, stored, fingerprint, now, now + given.keptFor],
          this.sql.insertForKey(stored, row, now),
          this.sql.noteForKey(
            stored,
            now,
            this.sql.hasSerial && !isGiven ? this.#engine.assigned(this.sql) : '1',
          ),
          ...after,
          [expireKeys, now],
        ]),
      () => this.#conflictsOf([row]),
    );
    const [kept] = results[2] ?? [];
    if (kept === undefined) return { is: 'running' };
    const [digest, keptPath = ''] = String(kept[0]).split(' ');
    if (digest !== given.fingerprint) return { is: 'reused' };
    const rowKey = keptPath === '' ? [Number(kept[1])] : this.format.readPath(keptPath);
    if (rowKey === undefined) return { is: 'reused' };
    return { is: 'created', key: rowKey, row: await this.#readLatest(rowKey) };
  }

  /** A write to a table of another program, whose constraints only a transaction explains. */
  #writeOne(write: Written<'change' | 'put'>): Promise<RowOutcome> {
    return writeOne(this.transactions, { ...write, relation: this.relation.name });
  }

  readonly #creation = (row: RowValues): RowWrite => ({ is: 'create', relation: this.relation.name, row });

  async #createOnce(row: RowValues, key: IdempotencyKey): Promise<CreateOnceOutcome> {
    const outcome = await this.transactions.writeOnce([this.#creation(row)], key);
    if (outcome.is !== 'created') return outcome;
    const [stored] = storedIn(outcome.outcomes);
    return { is: 'created', key: this.format.keyOf(stored?.values ?? row), row: stored };
  }

  async change(key: RowKey, patch: RowPatch, condition: WriteCondition | undefined): Promise<RowOutcome> {
    if (!this.sql.keepsVersion) return this.#writeOne({ is: 'change', key, patch, condition });
    const rows = await this.#explained(
      () => this.#engine.write(this.sql.update(key, patch, this.sql.conditionValues(condition), Date.now())),
      async () => {
        const stored = await this.#readLatest(key);
        if (stored === undefined) return [];
        return this.#conflictsOf([stored.values.map((value, i) => patch.get(i) ?? value)], key, patch);
      },
    );
    return this.#outcome(key, rows, condition, ([row = []]) => ({ is: 'changed', row: this.sql.row(row) }));
  }

  async put(row: RowValues, { condition, creates, replaces }: PutRule): Promise<RowOutcome> {
    const key = this.format.keyOf(row);
    if (!this.sql.keepsVersion)
      return this.#writeOne({ is: 'put', row, rule: { condition, creates, replaces } });
    for (let attempt = 0; attempt <= RETRIES; attempt++) {
      if (replaces) {
        const patch = new Map(this.#replaced.map((i) => [i, row[i] ?? null]));
        const outcome = await this.change(key, patch, condition);
        if (outcome.is !== 'missing' || !creates) return outcome;
      }
      const version = Date.now();
      const isCreated = await this.#explained(
        () => this.#engine.insertFree(this.sql, row, version),
        () => this.#conflictsOf([row], key),
      );
      if (isCreated) return { is: 'created', row: { values: row, version } };
      if (!replaces) return { is: 'refused' };
    }
    return { is: 'refused' };
  }

  async remove(key: RowKey, condition: WriteCondition | undefined): Promise<RowOutcome> {
    requireTable(this.relation, 0);
    const rows = await this.#explained(
      () => this.#engine.write(this.sql.remove(key, this.sql.conditionValues(condition))),
      async () => (await this.referrersOf(key)).map((by) => ({ code: 'REFERENCED', row: 0, by })),
      { code: 'REFERENCED', row: 0, by: undefined },
    );
    return this.#outcome(key, rows, condition, () => ({ is: 'removed' }));
  }

  async importRows(rows: readonly RowValues[], rule: ImportRule): Promise<ImportedRows> {
    requireTable(this.relation, 0);
    return this.#imports.store(rows, rule);
  }

  beginImport(key: string): Promise<ImportPosition> {
    return this.#imports.begin(key);
  }

  removeAll(where: Condition, max: number): Promise<number> {
    return this.#removeAll(where, max, undefined);
  }

  /** Removes the rows that meet a condition, unless one of them is kept. */
  async #removeAll(where: Condition, max: number, kept: Condition | undefined): Promise<number> {
    requireTable(this.relation, 0);
    // One more than allowed, to see whether there are more.
    const statement = await this.lists.removal(where, max + 1);
    const check = kept === undefined ? [] : [{ ...anyRow(this.sql, kept), most: 0 }];
    for (let attempt = 0; ; attempt++) {
      try {
        const results = await this.#engine.unit([...check, { ...statement, most: max }]);
        return results.at(-1)?.length ?? 0;
      } catch (error) {
        if (!(error instanceof UnitError)) throw error;
        if (error.fault === 'many' && error.step < check.length) throw notAllowed(0);
        if (error.fault === 'many') throw new TooManyRowsError(max);
        if (!this.#engine.isConflict(error.cause)) throw error.cause ?? error;
        const [first, ...others] = (await this.lists.referrersOf(where)).map(referencedBy);
        if (first !== undefined) throw new RowsRefusedError([first, ...others]);
        if (attempt === RETRIES) throw new RowsRefusedError([referencedBy(undefined)]);
      }
    }
  }

  /** The outcome of a write; if it affected no row under its condition, finds out why. */
  async #outcome(
    key: RowKey,
    rows: Rows,
    condition: WriteCondition | undefined,
    outcome: (rows: Rows) => RowOutcome,
  ): Promise<RowOutcome> {
    if (rows.length > 0) return outcome(rows);
    // Without a condition the row was missing, even if another write has created it since.
    if (condition?.versions === undefined && condition?.before === undefined) return { is: 'missing' };
    return { is: (await this.#readLatest(key)) === undefined ? 'missing' : 'refused' };
  }

  #withSerial(values: RowValues, serial: number | undefined): RowValues {
    const at = this.format.serial;
    return at === -1 || serial === undefined || values[at] !== null ? values : values.with(at, serial);
  }

  /**
   * Runs a write. If a constraint refuses it, looks for all conflicts of its rows, since an engine names the
   * first one at most. If there are none any more, tries again.
   */
  async #explained<T>(
    write: () => Promise<T>,
    conflicts: () => MaybePromise<readonly RowConflict[]>,
    unknown?: RowConflict,
  ): Promise<T> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await write();
      } catch (error) {
        if (!this.#engine.isConflict(error)) throw error;
        const [first, ...others] = await conflicts();
        if (first !== undefined) throw new RowsRefusedError([first, ...others]);
        if (attempt < RETRIES) continue;
        if (unknown !== undefined) throw new RowsRefusedError([unknown]);
        throw error;
      }
    }
  }

  /** The conflicts of rows to be stored; `own` is the key of the row that is replaced, `patch` what changes. */
  async #conflictsOf(
    rows: readonly RowValues[],
    own?: RowKey,
    patch?: RowPatch,
  ): Promise<readonly RowConflict[]> {
    const { relation, sql } = this;
    const found: RowConflict[] = [];
    const isChanged = (columns: readonly string[]) =>
      patch === undefined || columns.some((column) => patch.has(this.format.indexOf(column)));
    const valuesOf = (row: RowValues, columns: readonly string[]): readonly Value[] =>
      columns.map((column) => row[this.format.indexOf(column)] ?? null);
    const uniques = (own === undefined ? [relation.key, ...relation.unique] : relation.unique).filter(
      isChanged,
    );
    const references = relation.references.filter(({ columns }) => isChanged(columns));
    const earlier = uniques.map(() => new Set<string>());
    for (const [row, values] of rows.entries()) {
      for (const [i, columns] of uniques.entries()) {
        const given = valuesOf(values, columns);
        const text = comparable(sql, columns, values);
        const taken = sql.taken(columns, given, own);
        const isRepeated = text !== undefined && earlier[i]?.has(text) === true;
        if (text !== undefined) earlier[i]?.add(text);
        if (isRepeated || (await this.#finds(taken))) found.push({ code: 'TAKEN', row, columns });
      }
      for (const { to, columns, targetColumns } of references) {
        const target = this.#all.get(to);
        const reference = target?.sql.has(targetColumns, valuesOf(values, columns));
        if (reference === undefined || (await this.#finds(reference))) continue;
        found.push({ code: 'REFERENCE_MISSING', row, columns, to });
      }
      if (found.length >= MAX_CONFLICTS) break;
    }
    return found;
  }

  async referrersOf(key: RowKey): Promise<readonly string[]> {
    const found: string[] = [];
    for (const { relation: by, reference: name } of this.relation.inverses) {
      const other = this.#all.get(by);
      const reference = other?.relation.references.find((each) => each.name === name);
      if (other === undefined || reference?.onDelete !== 'restrict') continue;
      const values = reference.targetColumns.map((column) => key[this.relation.key.indexOf(column)] ?? null);
      if (await this.#finds(other.sql.has(reference.columns, values))) found.push(by);
    }
    return found;
  }

  async #finds(statement: BoundText | undefined): Promise<boolean> {
    return statement !== undefined && (await this.#engine.readLatest(statement)).length > 0;
  }
}
