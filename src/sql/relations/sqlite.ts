import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import { StatementTimeError } from '../../core/errors.ts';
import { GenerationalCache } from '../../core/generational-cache.ts';
import type { MaybePromise } from '../../core/scheduler.ts';
import type { Storage } from '../../relations/codec.ts';
import { SQLITE_BASE64 } from '../../relations/codecs.ts';
import type { Relation } from '../../relations/relation.ts';
import type { RowPage } from '../../relations/rows/row-lists.ts';
import type { RowStores, RowValues } from '../../relations/rows/rows.ts';
import { LIMITS, SelectionLimitError } from '../../relations/selections/limits.ts';
import { statementBudget } from '../../relations/selections/statement-budget.ts';
import { type BoundText, name, SQLITE_ROWS } from '../dialects/row-dialects.ts';
import type { FoundConstraint } from '../existing/writes.ts';
import { type PackedTexts, packTexts, type TextBounds } from '../list-sql.ts';
import { type Budget, type PagePlan, readAtOnce, readPlan, takeBytes } from '../selections/levels.ts';
import { readEach, readRows } from '../sqlite/connection.ts';
import type { Reader } from '../sqlite/reader.ts';
import { writeStep } from '../sqlite/sql.ts';
import type { TickSnapshot } from '../sqlite/tick-snapshot.ts';
import { type Step, UNIT, type UnitShape } from '../sqlite-writer/batch.ts';
import type { WriteQueue } from '../sqlite-writer/write-queue.ts';
import { isTooLong, MAX_TIME, StatementTime, timedTrigger } from '../statement-time.ts';
import type { Query, Step as SharedStep } from '../stores/sql.ts';
import {
  EarlierColumn,
  type NewRows,
  type RowEngine,
  type Rows,
  statementTexts,
  UnitError,
  type UnitStep,
} from './row-engine.ts';
import type { RowSql } from './row-sql.ts';
import { rowStores } from './row-store.ts';

/** Where the rows are. */
interface SqliteRowOptions {
  /** Reads on the caller's thread. */
  readonly reads: DatabaseSync;
  readonly writes: WriteQueue;
  readonly snapshot: TickSnapshot | undefined;
  /** Runs long reads; if undefined, the caller's thread runs them. */
  readonly reader: Reader | undefined;
  /** Called after each write, so that followers of changes look for it. */
  onWritten(): void;
}

/** Maximum size of all texts of prepared statements, in bytes. */
const MAX_STATEMENTS = 1024 * 1024;

/** After how many milliseconds a piece of an export ends on the caller's thread. */
const SHORT_TIME = 20;
/** What a read with nested rows may take on the caller's thread: a few milliseconds. */
const SHORT: Budget = { rows: 2_000, bytes: 512 * 1024 };

/**
 * Maximum number of values of an insert of many rows. SQLite copies each page that a statement changes, so that it can
 * undo the statement alone; a larger statement copies a page once for more rows.
 */
const MAX_VALUES = 4_096;

/** Opens the rows of the relations in an SQLite database. */
export function sqliteRows(relations: readonly Relation[], options: SqliteRowOptions): RowStores {
  // A removal cascades to any number of rows, within its statement.
  const triggers = relations.flatMap(({ table, references, existing }, nth) => {
    if (existing?.isView) return [];
    const isNumbered = existing === undefined;
    const changed = references.flatMap(({ onDelete, columns }) => (onDelete === 'null' ? columns : []));
    const update = `UPDATE OF ${changed.map(name).join(', ')}`;
    const removed = timedTrigger(name(table), 2 * nth, 'DELETE', isNumbered);
    return changed.length === 0
      ? [removed]
      : [removed, timedTrigger(name(table), 2 * nth + 1, update, isNumbered)];
  });
  const steps = triggers.map((statement): Step => ({ statement, values: [] }));
  // The queue fails later writes too if it fails this one.
  options.writes.submit(steps).catch(() => undefined);
  return rowStores(relations, new SqliteRows(options));
}

class SqliteRows implements RowEngine {
  readonly dialect = SQLITE_ROWS;
  readonly statements = statementTexts();
  readonly #options: SqliteRowOptions;
  /** The time of long reads on the caller's thread. */
  readonly #time: StatementTime;
  readonly #prepared = new GenerationalCache<StatementSync>(MAX_STATEMENTS);

  constructor(options: SqliteRowOptions) {
    this.#options = options;
    this.#time = new StatementTime(options.reads);
    options.reads.function(SQLITE_BASE64.name, { deterministic: true }, SQLITE_BASE64.call);
  }

  read(statement: BoundText, isLong = false): MaybePromise<Rows> {
    const { reader } = this.#options;
    if (isLong && reader !== undefined) return reader.rows(statement, statementBudget());
    if (!isLong && statementBudget() === undefined) return this.readLatest(statement);
    return this.#timely(() => this.#rows(statement));
  }

  // A snapshot ends before a commit is acknowledged.
  readLatest(statement: BoundText): Rows {
    this.#time.beginAtLook();
    try {
      return this.#rows(statement);
    } catch (error) {
      throw isTooLong(error) ? new StatementTimeError(error) : error;
    }
  }

  #rows({ text, values }: BoundText): Rows {
    this.#options.snapshot?.enter();
    return readRows<readonly unknown[]>(this.#statement(text), ...(values as readonly SQLInputValue[]));
  }

  levels(plan: PagePlan, isLong: boolean): MaybePromise<RowPage> {
    const { reader } = this.#options;
    if (reader === undefined) return this.#levels(plan, LIMITS);
    if (isLong) return reader.levels(plan, statementBudget());
    try {
      return this.#levels(plan, SHORT);
    } catch (error) {
      // It is longer than expected: the reader starts it again.
      if (!(error instanceof SelectionLimitError)) throw error;
      return reader.levels(plan, statementBudget());
    }
  }

  #levels(plan: PagePlan, budget: Budget): RowPage {
    const { snapshot } = this.#options;
    snapshot?.hold();
    try {
      return this.#timely(() =>
        readAtOnce(readPlan(plan, this.dialect, budget), ({ text, values, maxBytes }) => {
          const statement = this.#statement(text);
          const bound = values as readonly SQLInputValue[];
          if (maxBytes === undefined) return readRows<readonly unknown[]>(statement, ...bound);
          return readEach(statement, bound, (rows) => takeBytes(rows, maxBytes));
        }),
      );
    } finally {
      snapshot?.giveWay();
    }
  }

  texts(statement: BoundText, bounds: TextBounds): MaybePromise<PackedTexts> {
    const { reader, snapshot } = this.#options;
    if (reader !== undefined) return reader.texts(statement, bounds);
    snapshot?.enter();
    const values = statement.values as readonly SQLInputValue[];
    return this.#timely(() =>
      readEach(this.#statement(statement.text), values, (rows) =>
        packTexts(rows, { ...bounds, time: SHORT_TIME }),
      ),
    );
  }

  /** Reads on this thread, within the time of a statement and that of its operation. */
  #timely<T>(read: () => T): T {
    const budget = statementBudget();
    const most = budget?.left(MAX_TIME) ?? MAX_TIME;
    if (most <= 0) throw new StatementTimeError();
    this.#time.begin(most);
    try {
      return read();
    } catch (error) {
      throw isTooLong(error) ? new StatementTimeError(error) : error;
    } finally {
      const taken = this.#time.end();
      budget?.spend(taken);
    }
  }

  async write(statement: BoundText): Promise<Rows> {
    const [rows = []] = await this.#submit([step(statement)]);
    return rows;
  }

  async insert(sql: RowSql, { rows, version }: NewRows): Promise<readonly (number | undefined)[]> {
    const steps = rows.map((row) => step(insertOf(sql, row, version)));
    const stored = await this.#submit(steps);
    return stored.map(([row]) => (row === undefined ? undefined : Number(row[0])));
  }

  insertMany(sql: RowSql, rows: readonly RowValues[], version: number) {
    const inserted = sql.inserted(rows[0] ?? []);
    const slices = slicesOf(rows, MAX_VALUES / (inserted.length + 1));
    return {
      steps: slices.map((slice) => insertRows(sql, slice, inserted, version)),
      // The numbers of one statement follow each other, as there is one writer.
      serials: (results: readonly Rows[]) =>
        slices.flatMap((slice, i) => {
          const last = Number(results[i]?.[0]?.[0]);
          return slice.map((_, nth) => last - slice.length + 1 + nth);
        }),
    };
  }

  async insertFree(sql: RowSql, row: RowValues, version: number): Promise<boolean> {
    const key = sql.relation.key.map(name).join(', ');
    const insert = insertOf(
      sql,
      row,
      version,
      (values) => `VALUES (${values}) ON CONFLICT (${key}) DO NOTHING`,
    );
    const stored = await this.#submit([step(insert)]);
    return (stored[0]?.length ?? 0) > 0;
  }

  writeAll(steps: readonly (BoundText | SharedStep)[]): Promise<readonly Rows[]> {
    return this.#submit(steps.map((each) => ('text' in each ? step(each) : writeStep(each))));
  }

  /** A unit is one step of the writer, so that other commits do not wait while results travel. */
  async unit(steps: readonly UnitStep[], isTrial = false): Promise<readonly Rows[]> {
    const [shape, values] = unitShape(steps, isTrial);
    const write: Step = { statement: UNIT, values: [JSON.stringify(shape), ...values] };
    const [rows = []] = await this.#submit([write]).catch((error: unknown) => {
      const [, nth, fault] = UNIT_FAULT.exec(String(error)) ?? [];
      if (nth === undefined) throw error;
      throw new UnitError(Number(nth), (fault as UnitError['fault'] | undefined) ?? 'engine', error);
    });
    const results = steps.map((): (readonly unknown[])[] => []);
    for (const [nth, ...row] of rows) results[Number(nth)]?.push(row);
    return results;
  }

  textOf({ sqlite }: Query): string {
    return sqlite;
  }

  afterGiven(): readonly BoundText[] {
    return [];
  }

  assigned(): string {
    return 'last_insert_rowid()';
  }

  isConflict(error: unknown): boolean {
    return error instanceof Error && /(?:UNIQUE|FOREIGN KEY) constraint failed/.test(error.message);
  }

  isUnfit(error: unknown): boolean {
    return error instanceof Error && /(?:CHECK|NOT NULL) constraint failed|cannot store/.test(error.message);
  }

  constraintOf(error: unknown): FoundConstraint | undefined {
    const [, kind = '', rest = ''] = CONSTRAINT.exec(String(error)) ?? [];
    if (kind === '') return undefined;
    // A check has a name or its text, the others have columns with their table.
    if (kind === 'CHECK') return { name: rest, columns: undefined, isUnique: false };
    const columns = rest.split(', ').flatMap((each) => each.split('.').at(-1) ?? []);
    return { name: undefined, columns: rest === '' ? undefined : columns, isUnique: kind === 'UNIQUE' };
  }

  async #submit(steps: readonly Step[]): Promise<readonly Rows[]> {
    const rows = await this.#options.writes.submit(steps).catch((error: unknown) => {
      throw isTooLong(error) ? new StatementTimeError(error) : error;
    });
    this.#options.onWritten();
    return rows;
  }

  #statement(text: string): StatementSync {
    const known = this.#prepared.get(text);
    if (known !== undefined) return known;
    const made = this.#options.reads.prepare(text);
    made.setReturnArrays(true);
    this.#prepared.set(text, made, text.length);
    return made;
  }
}

/** The kind of a constraint that refuses a row, with the words of SQLite; errors that triggers raise have others. */
const CONSTRAINT = /(UNIQUE|FOREIGN KEY|CHECK|NOT NULL) constraint failed(?:: (.*))?/;

/** An error of the writer that names the statement of a unit. */
const UNIT_FAULT = /statement (\d+) of a unit: (few|many|large)?/;

/** A unit as the writer runs it, and the values of its statements. */
function unitShape(steps: readonly UnitStep[], isTrial: boolean): readonly [UnitShape, SQLInputValue[]] {
  const texts = new Map<string, number>();
  const values: SQLInputValue[] = [];
  const shapes = steps.map(({ text, values: own, kept, least, most, stops }) => {
    const nth = texts.get(text) ?? texts.size;
    texts.set(text, nth);
    const earlier: [place: number, step: number, column: number][] = [];
    for (const [place, value] of own.entries()) {
      const isEarlier = value instanceof EarlierColumn;
      if (isEarlier) earlier.push([place, value.step, value.column]);
      values.push(isEarlier ? null : (value as SQLInputValue));
    }
    return {
      text: nth,
      count: own.length,
      ...(earlier.length > 0 && { earlier }),
      ...(kept !== undefined && { kept }),
      ...(least !== undefined && { least }),
      ...(most !== undefined && { most }),
      ...(stops !== undefined && { stops }),
    };
  });
  return [{ texts: [...texts.keys()], steps: shapes, isTrial }, values];
}

function step({ text, values }: BoundText): Step {
  return { statement: text, values: values as readonly SQLInputValue[] };
}

/** The insert of a row; `source` writes what follows the names of the columns. */
function insertOf(
  sql: RowSql,
  row: RowValues,
  version: number,
  source = (values: string) => `VALUES (${values})`,
): BoundText {
  const inserted = sql.inserted(row);
  const names = sql.written(inserted);
  const parameters = names.map((_, i) => `?${i + 1}`).join(', ');
  return {
    text: `INSERT INTO ${sql.table} (${names.join(', ')}) ${source(parameters)}`,
    values: [...inserted.map((i) => sql.bindAt(i, row[i])), ...(sql.keepsVersion ? [version] : [])],
  };
}

/** Slices of powers of two, at most `most`, so that the writer prepares few statements. */
function slicesOf<T>(list: readonly T[], most: number): readonly (readonly T[])[] {
  const slices: (readonly T[])[] = [];
  let at = 0;
  for (let size = 2 ** Math.floor(Math.log2(Math.max(1, most))); size >= 1; size /= 2) {
    for (; list.length - at >= size; at += size) slices.push(list.slice(at, at + size));
  }
  return slices;
}

/** The insert of rows that name the same columns. */
function insertRows(
  sql: RowSql,
  rows: readonly RowValues[],
  inserted: readonly number[],
  version: number,
): BoundText {
  const names = sql.written(inserted);
  const row = `(${names.map(() => '?').join()})`;
  const storages = inserted.map((i) => sql.storageAt(i));
  const values: BoundText['values'][number][] = [];
  for (const each of rows) {
    for (const [nth, i] of inserted.entries()) values.push((storages[nth] as Storage).bind(each[i] ?? null));
    if (sql.keepsVersion) values.push(version);
  }
  return {
    text: `INSERT INTO ${sql.table} (${names.join()}) VALUES ${rows.map(() => row).join()}`,
    values,
  };
}
