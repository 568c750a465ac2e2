import type { Relation } from '../../relations/relation.ts';
import { type RowConflict, RowsRefusedError, type RowValues } from '../../relations/rows/rows.ts';
import {
  EarlierValue,
  type Given,
  type RowTransactions,
  type RowWrite,
  type WriteOutcome,
  WriteRefusedError,
  type WritesOnceOutcome,
} from '../../relations/rows/writes.ts';
import type { IdempotencyKey } from '../../relations/user.ts';
import { storedKey } from '../inbox-sql.ts';
import { USER_QUERIES } from '../stores/user-queries.ts';
import { EarlierColumn, type Rows, type UnitEngine, UnitError, type UnitStep } from './row-engine.ts';
import type { BoundText, RowSql } from './row-sql.ts';

/** A relation as transactions need it. */
interface WrittenRelation {
  readonly relation: Relation;
  readonly sql: RowSql;
}

/** A write with the indexes of its statements. */
interface PlannedWrite {
  readonly write: RowWrite;
  readonly sql: RowSql;
  readonly first: number;
  /** The statement that returns its row. */
  readonly main: number;
  /** The statement behind its last. */
  readonly end: number;
}

/** The statements of writes. */
interface Plan {
  readonly steps: readonly UnitStep[];
  readonly writes: readonly PlannedWrite[];
}

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

  constructor(engine: UnitEngine, all: ReadonlyMap<string, WrittenRelation>) {
    this.#engine = engine;
    this.#all = all;
  }

  write(writes: readonly RowWrite[]): Promise<readonly WriteOutcome[]> {
    return this.#explained(writes, 0, async (version) => {
      const plan = this.#plan(writes, 0, version);
      return outcomesOf(plan, await this.#engine.unit(plan.steps), version);
    });
  }

  writeOnce(writes: readonly RowWrite[], { key, ...given }: IdempotencyKey): Promise<WritesOnceOutcome> {
    const { claimKey, expireKeys } = USER_QUERIES;
    const { dialect } = this.#engine;
    const stored = storedKey(key);
    const isKey = `key = ${dialect.parameter(1, 'text')}`;
    const find = `SELECT fingerprint, version FROM idempotency_keys WHERE ${isKey} AND user_id > 0 AND expires_at > ${dialect.parameter(2, 'bigint')}`;
    const claim = `${this.#engine.textOf(claimKey)} RETURNING 1`;
    const keep = `UPDATE idempotency_keys SET user_id = 1, fingerprint = fingerprint || ' ' || ${dialect.parameter(2, 'text')} WHERE ${isKey}`;
    const begins = 2;
    return this.#explained(writes, begins, async (version): Promise<WritesOnceOutcome> => {
      const plan = this.#plan(writes, begins, version);
      const results = await this.#engine.unit([
        { text: find, values: [stored, version], stops: 'found' },
        {
          text: claim,
          values: [stored, given.fingerprint, version, version + given.keptFor],
          stops: 'none',
        },
        ...plan.steps,
        { text: keep, values: [stored, null], kept: 1 },
        { text: this.#engine.textOf(expireKeys), values: [version] },
      ]);
      const [kept] = results[0] ?? [];
      if (kept === undefined) {
        const isClaimed = (results[1] ?? []).length > 0;
        return isClaimed
          ? { is: 'created', outcomes: outcomesOf(plan, results, version) }
          : { is: 'running' };
      }
      // The digest has no space, and the results follow it.
      const text = String(kept[0]);
      const end = text.indexOf(' ');
      if (text.slice(0, end) !== given.fingerprint) return { is: 'reused' };
      return { is: 'created', outcomes: outcomesOf(plan, readResults(text.slice(end + 1)), Number(kept[1])) };
    });
  }

  /** The statements of writes, which `offset` others precede. */
  #plan(writes: readonly RowWrite[], offset: number, version: number): Plan {
    const steps: UnitStep[] = [];
    const planned: PlannedWrite[] = [];
    for (const write of writes) {
      const { sql } = this.#relation(write.relation);
      const first = offset + steps.length;
      for (const each of this.#statements(sql, write, version)) {
        steps.push({ ...each, values: valuesOf(planned, each) });
      }
      const isFound = write.is === 'upsert' && write.merged === undefined;
      planned.push({ write, sql, first, main: isFound ? first + 1 : first, end: offset + steps.length });
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
    version: number,
  ): readonly (BoundText & Pick<UnitStep, 'least'>)[] {
    const numbered = (row: readonly Given[]) => (sql.givesSerial(row) ? this.#engine.afterGiven(sql) : []);
    switch (write.is) {
      case 'create':
        return [{ ...sql.insert(write.row, version), least: 1 }, ...numbered(write.row)];
      case 'upsert': {
        const { row, on, merged, givesKey } = write;
        const insert = sql.insert(row, version, { columns: on, merged, sameKey: givesKey });
        if (merged !== undefined) return [{ ...insert, least: 1 }, ...numbered(row)];
        const find = sql.find(on, columnsOf(sql, row, on));
        if (find === undefined) throw new Error('An upsert has all values of its unique');
        return [insert, { ...find, least: 1 }, ...numbered(row)];
      }
      case 'change': {
        const { key, patch, condition } = write;
        return [{ ...sql.update(key, patch, sql.conditionValues(condition), version), least: 1 }];
      }
      case 'put': {
        const { row, rule } = write;
        const { key, columns } = sql.relation;
        const replaced = columns.flatMap(({ name }, i) => (key.includes(name) ? [] : [i]));
        if (rule.creates) {
          const merged = rule.replaces ? replaced : undefined;
          return [
            { ...sql.insert(row, version, { columns: key, merged, sameKey: false }), least: 1 },
            ...numbered(row),
          ];
        }
        const patch = replaced.map((i) => [i, row[i] ?? null] as const);
        const condition = sql.conditionValues(rule.condition);
        return [{ ...sql.update(columnsOf(sql, row, key), patch, condition, version), least: 1 }];
      }
      case 'remove':
        return [{ ...sql.remove(write.key, sql.conditionValues(write.condition)), least: 1 }];
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
    const { write, sql, first } = failed;
    const isConflict = fault === 'engine' && this.#engine.isConflict(cause);
    if (fault === 'engine' && !isConflict) {
      const isUnfit = this.#engine.isUnfit(cause) && usesEarlier(write);
      return isUnfit ? { write: new WriteRefusedError(nth, 'unfit', cause) } : { isLasting: true };
    }
    if (write.is === 'upsert' && !isConflict) {
      const conflict = { code: 'TAKEN', row: nth, columns: write.on } as const;
      return write.merged === undefined ? {} : { write: new RowsRefusedError([conflict]) };
    }
    const before = steps.slice(0, first);
    const key = keyOf(sql, write);
    const look = key === undefined ? [] : [sql.read(key)];
    const results = await this.#trial(before, planned, look);
    if (results === undefined) return {};
    const [stored] = results[first] ?? [];
    if (!isConflict)
      return { write: new WriteRefusedError(nth, stored === undefined ? 'missing' : 'refused') };
    const isNull = (value: Given | undefined) => {
      if (!(value instanceof EarlierValue)) return value === null || value === undefined;
      const found = results[planned[value.write]?.main ?? -1]?.[0]?.[value.column];
      return found === null || found === undefined;
    };
    const checks = this.#checks(sql, write, stored && sql.row(stored).values, { nth, isNull });
    const asked = checks.flatMap(({ statement }) => (statement === undefined ? [] : [statement]));
    const answers = asked.length === 0 ? [] : await this.#trial(before, planned, asked);
    if (answers === undefined) return {};
    let next = first;
    const found = checks.flatMap(({ statement, isThere, conflict }) => {
      const isFound = statement !== undefined && (answers[next++] ?? []).length > 0;
      return isFound === isThere ? [conflict] : [];
    });
    const [one, ...others] = found;
    if (one !== undefined) return { write: new RowsRefusedError([one, ...others]) };
    if (write.is !== 'remove') return {};
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
        const statement = this.#relation(to).sql.has(targetColumns, values);
        const conflict = { code: 'REFERENCE_MISSING', row: nth, columns, to } as const;
        return isItself ? [] : [{ statement, isThere: false, conflict }];
      }),
    ];
  }

  /** The relations that may forbid a removal. */
  #referrers(sql: RowSql, key: readonly Given[], nth: number): readonly Check[] {
    return sql.relation.inverses.flatMap(({ relation: by, reference: name }): readonly Check[] => {
      const other = this.#relation(by);
      const reference = other.relation.references.find((each) => each.name === name);
      if (reference?.onDelete !== 'restrict') return [];
      const values = reference.targetColumns.map((column) => key[sql.relation.key.indexOf(column)] ?? null);
      const conflict = { code: 'REFERENCED', row: nth, by } as const;
      return [{ statement: other.sql.has(reference.columns, values), isThere: true, conflict }];
    });
  }
}

/** The values of a statement, with the places of those that earlier writes store. */
function valuesOf(planned: readonly PlannedWrite[], { values }: BoundText): UnitStep['values'] {
  return values.map((value) => {
    if (!(value instanceof EarlierValue)) return value;
    const write = planned[value.write];
    if (write === undefined) throw new Error(`There is no earlier write ${value.write}`);
    return new EarlierColumn(write.main, value.column, write.sql.storageAt(value.column));
  });
}

function columnsOf(sql: RowSql, row: readonly Given[], columns: readonly string[]): readonly Given[] {
  return columns.map((column) => row[sql.indexOf(column)] ?? null);
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
    if (write.is === 'change') return { is: 'changed', row };
    // An insert that changes the row that is there gives it a higher version than a new one.
    if (main === first) return { is: row.version === version ? 'created' : 'changed', row };
    return { is: (results[first] ?? []).length > 0 ? 'created' : 'found', row };
  });
}

/** Reads what `keptResults` wrote. */
function readResults(text: string): readonly Rows[] {
  return JSON.parse(text, (_, value: unknown) => {
    const { hex } = Object(value) as { readonly hex?: unknown };
    return typeof hex === 'string' && typeof value === 'object' ? Buffer.from(hex, 'hex') : value;
  }) as readonly Rows[];
}
