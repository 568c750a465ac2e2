import type { Relation } from '../../relations/relation.ts';
import { type RowConflict, RowsRefusedError, type RowValues } from '../../relations/rows/rows.ts';
import {
  EarlierValue,
  type Given,
  type RowTransactions,
  type RowWrite,
  replacedIn,
  type ShownWrites,
  type WriteOutcome,
  WriteRefusedError,
  type WritesOnceOutcome,
} from '../../relations/rows/writes.ts';
import type { RowView } from '../../relations/rules/views.ts';
import type { IdempotencyKey } from '../../relations/user.ts';
import type { BoundText } from '../dialects/row-dialects.ts';
import { asksFirst, databaseRefusal, NONE, requireTable } from '../existing/writes.ts';
import { readKept, type ShownWrite, shownText } from '../hooks/kept-outcomes.ts';
import { storedKey } from '../inbox-sql.ts';
import { notAllowed, type ReadRows, ruleRefusal } from '../rules/rule-refusals.ts';
import {
  additionOf,
  afterWrite,
  foundOrInserted,
  InsertedValue,
  type RuledWrite,
  ruledWrite,
} from '../rules/ruled-writes.ts';
import { USER_QUERIES } from '../stores/user-queries.ts';
import { EarlierColumn, type Rows, type UnitEngine, UnitError, type UnitStep } from './row-engine.ts';
import type { Addition, RowSql } from './row-sql.ts';

/** A relation as transactions need it. */
interface WrittenRelation {
  readonly relation: Relation;
  readonly sql: RowSql;
}

/** A write with the indexes of its statements. */
interface PlannedWrite {
  readonly write: RowWrite;
  readonly sql: RowSql;
  readonly rules: RuledWrite | undefined;
  readonly first: number;
  /** The statement that returns its row. */
  readonly main: number;
  /** The statement that asks whether the row is one that the caller may store, if there is one. */
  readonly check: number | undefined;
  /** The statement behind its last. */
  readonly end: number;
}

/** The statements of writes. */
interface Plan {
  readonly steps: readonly UnitStep[];
  readonly writes: readonly PlannedWrite[];
}

type PlannedStep = BoundText & Pick<UnitStep, 'least'>;

/** A question about a row that was refused. */
interface Check {
  readonly statement: BoundText | undefined;
  /** Whether there is a conflict if the statement has a row, or if it has none. */
  readonly isThere: boolean;
  readonly conflict: RowConflict;
}

/** How often writes are repeated if their conflict cannot be found any more. */
const RETRIES = 3;

/** Transactions over the rows of all relations. */
export class RowUnits implements RowTransactions {
  readonly #engine: UnitEngine;
  readonly #all: ReadonlyMap<string, WrittenRelation>;
  /** What the caller may do; undefined without rules. */
  readonly #view: RowView | undefined;

  constructor(engine: UnitEngine, all: ReadonlyMap<string, WrittenRelation>, view?: RowView) {
    this.#engine = engine;
    this.#all = all;
    this.#view = view;
  }

  /** Transactions in which a caller writes what it may. */
  as(view: RowView): RowUnits {
    return new RowUnits(this.#engine, this.#all, view);
  }

  write(writes: readonly RowWrite[]): Promise<readonly WriteOutcome[]> {
    return this.#explained(writes, 0, async (version) => {
      const plan = this.#plan(writes, 0, version);
      return outcomesOf(plan, await this.#engine.unit(plan.steps), version);
    });
  }

  async kept(key: IdempotencyKey): Promise<WritesOnceOutcome | undefined> {
    const [[found] = []] = await this.#engine.unit([this.#find(key, Date.now())]);
    return found && this.#keptOutcome(found, key, undefined);
  }

  /** Finds the outcome that is kept for a key. */
  #find({ key }: Pick<IdempotencyKey, 'key'>, now: number): UnitStep {
    const { dialect } = this.#engine;
    const text = `SELECT fingerprint, version FROM idempotency_keys WHERE key = ${dialect.parameter(1, 'text')} AND user_id > 0 AND expires_at > ${dialect.parameter(2, 'bigint')}`;
    return { text, values: [storedKey(key), now], stops: 'found' };
  }

  #keptOutcome(
    [text, version]: readonly unknown[],
    { fingerprint }: Pick<IdempotencyKey, 'fingerprint'>,
    plan: Plan | undefined,
  ): WritesOnceOutcome {
    const { results = [], shown } = readKept(String(text), fingerprint) ?? {};
    if (shown !== undefined) {
      const outcomes = shown.map(([is, relation, step]): WriteOutcome => {
        const stored = results[step]?.[0];
        if (is === 'removed' || stored === undefined) return { is: 'removed' };
        return { is, row: this.#relation(relation).sql.row(stored) };
      });
      return { is: 'created', outcomes };
    }
    if (plan === undefined || results.length === 0) return { is: 'reused' };
    return { is: 'created', outcomes: outcomesOf(plan, results, Number(version)) };
  }

  writeOnce(
    writes: readonly RowWrite[],
    { key, ...given }: IdempotencyKey,
    shown?: ShownWrites,
  ): Promise<WritesOnceOutcome> {
    const { claimKey, expireKeys } = USER_QUERIES;
    const { dialect } = this.#engine;
    const stored = storedKey(key);
    const isKey = `key = ${dialect.parameter(1, 'text')}`;
    const claim = `${this.#engine.textOf(claimKey)} RETURNING 1`;
    const keep = `UPDATE idempotency_keys SET user_id = 1, fingerprint = fingerprint || ' ' || ${dialect.parameter(2, 'text')} WHERE ${isKey}`;
    const begins = 2;
    return this.#explained(writes, begins, async (version): Promise<WritesOnceOutcome> => {
      const plan = this.#plan(writes, begins, version);
      const results = await this.#engine.unit([
        this.#find({ key }, version),
        {
          text: claim,
          values: [
            stored,
            [given.fingerprint, ...(shown === undefined ? [] : [shownText(shownSteps(plan, shown))])].join(
              ' ',
            ),
            version,
            version + given.keptFor,
          ],
          stops: 'none',
        },
        ...plan.steps,
        { text: keep, values: [stored, null], kept: 1 },
        { text: this.#engine.textOf(expireKeys), values: [version] },
      ]);
      const [kept] = results[0] ?? [];
      if (kept === undefined) {
        const isClaimed = (results[1] ?? []).length > 0;
        if (!isClaimed) return { is: 'running' };
        const outcomes = outcomesOf(plan, results, version);
        const own = shown?.map(({ write }) => outcomes[write] as WriteOutcome);
        return { is: 'created', outcomes: own ?? outcomes };
      }
      return this.#keptOutcome(kept, given, plan);
    });
  }

  /** The statements of writes, which `offset` others precede. */
  #plan(writes: readonly RowWrite[], offset: number, version: number): Plan {
    const steps: UnitStep[] = [];
    const planned: PlannedWrite[] = [];
    for (const [nth, write] of writes.entries()) {
      const { sql } = this.#relation(write.relation);
      requireTable(sql.relation, nth);
      const rules = write.isUnruled
        ? undefined
        : ruledWrite(this.#view, sql, write, (name) => this.#all.get(name)?.relation);
      const first = offset + steps.length;
      const own: readonly PlannedStep[] = this.#statements(sql, write, { version, nth, rules });
      const after = rules && afterWrite(sql, write, rules, { nth, version });
      const all = after === undefined ? own : [...own, { ...after, least: 1 }];
      const check = after === undefined ? undefined : first + own.length;
      const isFound = write.is === 'upsert' && write.merged === undefined;
      const main = isFound || asksFirst(sql, write) ? first + 1 : first;
      planned.push({ write, sql, rules, first, main, check, end: first + all.length });
      for (const each of all) steps.push({ ...each, values: valuesOf(planned, each) });
    }
    return { steps, writes: planned };
  }

  #relation(name: string): WrittenRelation {
    const found = this.#all.get(name);
    if (found === undefined) throw new Error(`There is no relation ${name}`);
    return found;
  }

  #statements(
    sql: RowSql,
    write: RowWrite,
    { version, nth, rules }: { version: number; nth: number; rules: RuledWrite | undefined },
  ): readonly PlannedStep[] {
    const also = additionOf(sql, rules?.before);
    const numbered = (row: readonly Given[]) => (sql.givesSerial(row) ? this.#engine.afterGiven(sql) : []);
    switch (write.is) {
      case 'create':
        return [{ ...sql.insert(write.row, version), least: 1 }, ...numbered(write.row)];
      case 'upsert': {
        const { row, on, merged, givesKey } = write;
        const insert = sql.insert(row, version, {
          columns: on,
          merged,
          sameKey: givesKey,
          ...(merged !== undefined && { also }),
        });
        const before = asksFirst(sql, write) ? [sql.find(on, columnsOf(sql, row, on)) ?? NONE] : [];
        if (merged !== undefined) return [...before, { ...insert, least: 1 }, ...numbered(row)];
        const isSeen = rules && foundOrInserted(sql, rules.found, nth);
        const find = sql.find(on, columnsOf(sql, row, on), isSeen);
        if (find === undefined) throw new Error('An upsert has all values of its unique');
        return [insert, { ...find, least: 1 }, ...numbered(row)];
      }
      case 'change': {
        const { key, patch, condition } = write;
        return [{ ...sql.update(key, patch, sql.conditionValues(condition), version, also), least: 1 }];
      }
      case 'put': {
        const { row, rule } = write;
        const { key } = sql.relation;
        const replaced = write.replaced ?? replacedIn(sql.relation);
        if (rule.creates) {
          const merged = rule.replaces ? replaced : undefined;
          return [
            ...(asksFirst(sql, write) ? [sql.read(columnsOf(sql, row, key))] : []),
            {
              ...sql.insert(row, version, {
                columns: key,
                merged,
                sameKey: false,
                ...(merged !== undefined && { also }),
              }),
              least: 1,
            },
            ...numbered(row),
          ];
        }
        const patch = replaced.flatMap((i) => {
          // A value that the database gives stays as it is.
          const isLeft = sql.relation.columns[i]?.default?.kind === 'database' && row[i] === null;
          return isLeft ? [] : [[i, row[i] ?? null] as const];
        });
        const condition = sql.conditionValues(rule.condition);
        return [{ ...sql.update(columnsOf(sql, row, key), patch, condition, version, also), least: 1 }];
      }
      case 'remove':
        return [{ ...sql.remove(write.key, sql.conditionValues(write.condition), also), least: 1 }];
    }
  }

  /** Does writes; explains why they are refused, or tries again if nothing refuses them any more. */
  async #explained<T>(
    writes: readonly RowWrite[],
    offset: number,
    work: (version: number) => Promise<T>,
  ): Promise<T> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await work(Date.now());
      } catch (error) {
        if (!(error instanceof UnitError)) throw error;
        const { write, isLasting } = await this.#refusal(writes, error, offset);
        if (write !== undefined) throw write;
        if (isLasting || attempt === RETRIES) throw error.cause ?? error;
      }
    }
  }

  /**
   * Why a statement was refused, as seen behind the statements before it, which run once more and are undone.
   * Undefined if another write has changed that since.
   */
  async #refusal(
    writes: readonly RowWrite[],
    { step, fault, cause }: UnitError,
    offset: number,
  ): Promise<{ readonly write?: Error; readonly isLasting?: boolean }> {
    const { steps, writes: planned } = this.#plan(writes, 0, Date.now());
    const nth = planned.findIndex(({ end }) => step - offset < end);
    const failed = planned[nth];
    if (fault === 'large') return { write: new WriteRefusedError(Math.max(0, nth), 'large') };
    if (failed === undefined) return { isLasting: true };
    const { write, sql, first, rules } = failed;
    const isConflict = fault === 'engine' && this.#engine.isConflict(cause);
    const constraint = fault === 'engine' ? this.#engine.constraintOf(cause) : undefined;
    const known = constraint && databaseRefusal(sql.relation, nth, constraint);
    if (fault === 'engine' && !isConflict) {
      if (known !== undefined) return { write: known };
      const isUnfit = this.#engine.isUnfit(cause) && usesEarlier(write);
      return isUnfit ? { write: new WriteRefusedError(nth, 'unfit', cause) } : { isLasting: true };
    }
    if (rules === undefined && write.is === 'upsert' && !isConflict) {
      const conflict = { code: 'TAKEN', row: nth, columns: write.on } as const;
      return write.merged === undefined ? {} : { write: new RowsRefusedError([conflict]) };
    }
    const before = steps.slice(0, first);
    const read = (reads: readonly BoundText[]) => this.#trial(before, planned, reads);
    const key = keyOf(sql, write);
    const results = await read(key === undefined ? [] : [sql.read(key)]);
    if (results === undefined) return {};
    const [stored] = results[first] ?? [];
    if (rules === undefined && !isConflict)
      return { write: new WriteRefusedError(nth, stored === undefined ? 'missing' : 'refused') };
    const row = stored && sql.row(stored);
    const isCheck = step - offset === failed.check;
    const refused =
      rules && (await ruleRefusal(failed, rules, { nth, isCheck, isConflict, read: reading(read, first) }));
    if (refused !== undefined) return refused;
    const isNull = (value: Given | undefined) => {
      if (!(value instanceof EarlierValue)) return value === null || value === undefined;
      const found = results[planned[value.write]?.main ?? -1]?.[0]?.[value.column];
      return found === null || found === undefined;
    };
    const checks = this.#checks(sql, write, row?.values, { nth, isNull });
    const asked = checks.flatMap(({ statement }) => (statement === undefined ? [] : [statement]));
    const answers = asked.length === 0 ? [] : await read(asked);
    if (answers === undefined) return {};
    let next = first;
    const found = checks.flatMap(({ statement, isThere, conflict }) => {
      const isFound = statement !== undefined && (answers[next++] ?? []).length > 0;
      return isFound === isThere ? [conflict] : [];
    });
    const [one, ...others] = found;
    if (one !== undefined) return { write: new RowsRefusedError([one, ...others]) };
    if (isCheck) return { write: notAllowed(nth) };
    if (write.is !== 'remove') return known === undefined ? {} : { write: known };
    return { write: new RowsRefusedError([{ code: 'REFERENCED', row: nth, by: undefined }]) };
  }

  /** Reads behind some statements, and undoes these; undefined if they fail meanwhile. */
  async #trial(
    before: readonly UnitStep[],
    planned: readonly PlannedWrite[],
    reads: readonly BoundText[],
  ): Promise<readonly Rows[] | undefined> {
    const steps = reads.map((each): UnitStep => ({ ...each, values: valuesOf(planned, each) }));
    try {
      return await this.#engine.unit([...before, ...steps], true);
    } catch (error) {
      if (error instanceof UnitError) return undefined;
      throw error;
    }
  }

  /** What may refuse a write; `stored` is the row that it changes. */
  #checks(
    sql: RowSql,
    write: RowWrite,
    stored: RowValues | undefined,
    { nth, isNull }: { readonly nth: number; readonly isNull: (value: Given | undefined) => boolean },
  ): readonly Check[] {
    const { relation } = sql;
    if (write.is === 'remove') return this.#referrers(sql, write.key, nth);
    const isPatch = write.is === 'change';
    if (isPatch && stored === undefined) return [];
    const given = isPatch ? (stored ?? []).map((value, i) => write.patch.get(i) ?? value) : write.row;
    const row = given.map((value) => (isNull(value) ? null : value));
    const isChanged = (columns: readonly string[]) =>
      !isPatch || columns.some((column) => write.patch.has(sql.indexOf(column)));
    const same = write.is === 'create' ? undefined : write.is === 'upsert' ? write.on : relation.key;
    const uniques = [relation.key, ...relation.unique].filter(
      (columns) => isChanged(columns) && String(columns) !== String(same),
    );
    const own = same && columnsOf(sql, row, same);
    const references = relation.references.filter(({ columns }) => isChanged(columns));
    return [
      ...uniques.map((columns): Check => {
        const statement = sql.taken(columns, columnsOf(sql, row, columns), own, same);
        return { statement, isThere: true, conflict: { code: 'TAKEN', row: nth, columns } };
      }),
      ...references.flatMap(({ to, columns, targetColumns }): readonly Check[] => {
        const values = columnsOf(sql, row, columns);
        // Without all of its values it refers to nothing, and it may refer to itself.
        if (values.includes(null)) return [];
        const isItself =
          to === relation.name && String(values) === String(columnsOf(sql, row, targetColumns));
        const target = this.#relation(to);
        const isKept = stored !== undefined && String(columnsOf(sql, stored, columns)) === String(values);
        const isSeen = isKept ? undefined : this.#found(sql, target, row, columns);
        const statement = target.sql.has(targetColumns, values, isSeen);
        const conflict = { code: 'REFERENCE_MISSING', row: nth, columns, to } as const;
        return isItself ? [] : [{ statement, isThere: false, conflict }];
      }),
    ];
  }

  /** The condition on a referenced row that the caller may read it; undefined if that does not matter. */
  #found(
    sql: RowSql,
    target: WrittenRelation,
    row: readonly Given[],
    columns: readonly string[],
  ): Addition | undefined {
    if (this.#view === undefined) return undefined;
    const { set } = this.#view.of(sql.relation);
    const isOwn = columns.some((column) => {
      const index = sql.indexOf(column);
      return set.has(index) || row[index] instanceof EarlierValue;
    });
    return isOwn ? undefined : additionOf(target.sql, this.#view.of(target.relation).found);
  }

  /** The relations that may forbid a removal. */
  #referrers(sql: RowSql, key: readonly Given[], nth: number): readonly Check[] {
    return sql.relation.inverses.flatMap(({ relation: by, reference: name }): readonly Check[] => {
      const other = this.#relation(by);
      const reference = other.relation.references.find((each) => each.name === name);
      if (reference?.onDelete !== 'restrict') return [];
      const values = reference.targetColumns.map((column) => key[sql.relation.key.indexOf(column)] ?? null);
      const conflict = { code: 'REFERENCED', row: nth, by } as const;
      return [
        {
          statement: other.sql.has(
            reference.columns,
            values,
            additionOf(other.sql, this.#view?.of(other.relation).found),
          ),
          isThere: true,
          conflict,
        },
      ];
    });
  }
}

function shownSteps({ writes }: Plan, shown: ShownWrites): readonly ShownWrite[] {
  return shown.map(({ write, is }) => {
    const { write: own, main } = writes[write] as PlannedWrite;
    return [is, own.relation, main];
  });
}

/** The values of a statement, with the places of those that earlier writes store. */
function valuesOf(planned: readonly PlannedWrite[], { values }: BoundText): UnitStep['values'] {
  return values.map((value) => {
    if (!(value instanceof EarlierValue)) return value;
    const write = planned[value.write];
    if (write === undefined) throw new Error(`There is no earlier write ${value.write}`);
    const step = value instanceof InsertedValue ? write.first : write.main;
    return new EarlierColumn(step, value.column, write.sql.storageAt(value.column));
  });
}

function columnsOf(sql: RowSql, row: readonly Given[], columns: readonly string[]): readonly Given[] {
  return columns.map((column) => row[sql.indexOf(column)] ?? null);
}

/** Reads whether statements have rows, and the first row of each. */
function reading(
  read: (reads: readonly BoundText[]) => Promise<readonly Rows[] | undefined>,
  first: number,
): ReadRows {
  return async (statements) => {
    const results = await read(statements);
    return results && statements.map((_, i) => results[first + i]?.[0]);
  };
}

/** The key of the row that a write needs; undefined if it needs none. */
function keyOf(sql: RowSql, write: RowWrite): readonly Given[] | undefined {
  if (write.is === 'change' || write.is === 'remove') return write.key;
  return write.is === 'put' ? columnsOf(sql, write.row, sql.relation.key) : undefined;
}

function usesEarlier(write: RowWrite): boolean {
  const values =
    write.is === 'change'
      ? [...write.key, ...write.patch.values()]
      : write.is === 'remove'
        ? write.key
        : write.row;
  return values.some((value) => value instanceof EarlierValue);
}

function outcomesOf({ writes }: Plan, results: readonly Rows[], version: number): readonly WriteOutcome[] {
  return writes.map(({ write, sql, first, main }): WriteOutcome => {
    if (write.is === 'remove') return { is: 'removed' };
    const [stored] = results[main] ?? [];
    if (stored === undefined) throw new Error('A write returned no row');
    const row = sql.row(stored);
    if (write.is === 'create') return { is: 'created', row };
    if (write.is === 'change' || (write.is === 'put' && !write.rule.creates)) return { is: 'changed', row };
    if (asksFirst(sql, write)) return { is: (results[first] ?? []).length > 0 ? 'changed' : 'created', row };
    // An insert that changes the row that is there gives it a higher version than a new one.
    if (main === first)
      return { is: row.version === version || !sql.keepsVersion ? 'created' : 'changed', row };
    return { is: (results[first] ?? []).length > 0 ? 'created' : 'found', row };
  });
}
