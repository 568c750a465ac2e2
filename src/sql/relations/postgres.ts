import { createHash } from 'node:crypto';
import { OutcomeUnknownError, StatementTimeError } from '../../core/errors.ts';
import type { Relation } from '../../relations/relation.ts';
import type { RowPage } from '../../relations/rows/row-lists.ts';
import type { RowStores, RowValues } from '../../relations/rows/rows.ts';
import { LIMITS } from '../../relations/selections/limits.ts';
import { type StatementBudget, statementBudget } from '../../relations/selections/statement-budget.ts';
import type { BatchQueue, DatabaseObserver } from '../batch-queue.ts';
import { type Bound, type BoundText, name, POSTGRES_ROWS } from '../dialects/row-dialects.ts';
import type { FoundConstraint } from '../existing/writes.ts';
import { type PackedTexts, packTexts, type TextBounds } from '../list-sql.ts';
import type { UserReads } from '../postgres/user-reads.ts';
import { singleWrite, writeQueue } from '../postgres/write-queue.ts';
import {
  type Connection,
  isValueError,
  STATEMENT_TIMEOUT,
  type Statement,
  type Steps,
  sqlState,
} from '../postgres-pool/connection.ts';
import { type Server, writeFailure } from '../postgres-pool/server.ts';
import { textLiteral } from '../schema/tables.ts';
import { type LevelReads, type PagePlan, readPlan } from '../selections/levels.ts';
import { keptResults, MAX_RESULTS, sizeOfRows } from '../sqlite-writer/batch.ts';
import type { Query, Step } from '../stores/sql.ts';
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
interface PostgresRowOptions {
  readonly server: Server;
  readonly reads: UserReads;
  readonly observer: DatabaseObserver;
  /** Called after each write, so that followers of changes look for it. */
  onWritten(): void;
}

/** The rows of relations in a PostgreSQL database; disposing of them waits for accepted writes. */
interface PostgresRowStores extends AsyncDisposable {
  readonly stores: RowStores;
}

/** Opens the rows of the relations in a PostgreSQL database. */
export function postgresRows(relations: readonly Relation[], options: PostgresRowOptions): PostgresRowStores {
  const engine = new PostgresRows(options);
  return {
    stores: rowStores(relations, engine),
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  };
}

/** unique_violation and foreign_key_violation. */
const CONFLICTS: ReadonlySet<unknown> = new Set(['23505', '23503']);
/** restrict_violation. */
const RESTRICTED = '23001';
/** in_failed_sql_transaction: an earlier statement has failed. */
const ABORTED = '25P02';
/** data_exception, check_violation and not_null_violation. */
const UNFIT = /^(?:22...|23514|23502)$/;
const UNIQUE = '23505';
/** Values or constraints refuse a row, or a trigger or the condition of a view does. */
const REFUSALS = /^(?:22|23|44|P0001)/;
/** Maximum number of statements that a connection prepares for relations. */
const MAX_PREPARED = 500;
/** Maximum number of pieces of exports that run at once: each has a connection of the writes. */
const MAX_PIECES = 2;
/** Maximum number of concurrent batches of creates, each on its own connection. */
const CREATE_CONCURRENCY = 2;

type Serials = readonly (number | undefined)[];

class PostgresRows implements RowEngine, AsyncDisposable {
  readonly dialect = POSTGRES_ROWS;
  readonly statements = statementTexts();
  readonly #options: PostgresRowOptions;
  readonly #names = new Map<string, string>();
  /** The creates of each relation, by the columns that they name. */
  readonly #creates = new Map<string, BatchQueue<NewRows, Serials>>();
  /** How many pieces of exports run, and the start of each that waits for one of them to end. */
  #pieces = 0;
  readonly #waitingPieces: (() => void)[] = [];

  constructor(options: PostgresRowOptions) {
    this.#options = options;
  }

  read({ text, values }: BoundText, isLong = false): Promise<Rows> {
    const budget = statementBudget();
    const { reads } = this.#options;
    const run = (most: number) => {
      if (!isLong) return reads.run(this.#named(text), values);
      // Without a name it is planned for its values.
      return most > UNTOLD ? reads.run({ text }, values, true) : this.#readWithin(most, { text, values });
    };
    return (budget === undefined ? run(STATEMENT_TIMEOUT) : within(budget, run)).catch(refuseTooLong);
  }

  /** A long read that may take `most` milliseconds. */
  async #readWithin(most: number, { text, values }: BoundText): Promise<Rows> {
    const { rows } = await this.#measured(most, { text, values });
    return rows;
  }

  /** The same with how long it took, once it had a connection. */
  async #measured(most: number, { text, values }: BoundText) {
    let measured: { readonly rows: Rows; readonly taken: number } = { rows: [], taken: 0 };
    await this.#options.reads.snapshot(async (run) => {
      const began = performance.now();
      const mode = run({ text: 'SET LOCAL plan_cache_mode = auto' }, []);
      const [rows] = await Promise.all([timed(run, most, { text }, values), mode]);
      measured = { rows, taken: performance.now() - began };
    });
    return measured;
  }

  /** The statements are those of one transaction, so that a row and what belongs to it are of one moment. */
  levels(plan: PagePlan): Promise<RowPage> {
    const { promise, resolve, reject } = Promise.withResolvers<RowPage>();
    const budget = statementBudget();
    const work = (run: Connection['run']) => read(run).catch(refusedBefore(reject));
    const read = async (run: Connection['run']) => {
      const reads = readPlan(plan, this.dialect, LIMITS);
      for (let rows: Rows = []; ; ) {
        const step = resumed(reads, rows);
        if ('error' in step) return reject(step.error);
        // The end of the transaction changes nothing.
        if (step.done) return resolve(step.value);
        if (step.value === undefined) await new Promise(setImmediate);
        if (step.value === undefined) {
          rows = [];
          continue;
        }
        const { text, values } = step.value;
        const statement = this.#named(text);
        rows = await (budget === undefined
          ? run(statement, values)
          : within(budget, (most) => timed(run, most, statement, values)));
      }
    };
    this.#options.reads.snapshot(work).catch(reject);
    return promise.catch(refuseTooLong);
  }

  async texts(statement: BoundText, bounds: TextBounds): Promise<PackedTexts> {
    if (bounds.isPaced !== true) return packTexts(await this.read(statement), bounds);
    if (this.#pieces === MAX_PIECES) await new Promise<void>((start) => this.#waitingPieces.push(start));
    else this.#pieces++;
    try {
      const { rows, taken } = await this.#measured(STATEMENT_TIMEOUT, statement).catch(refuseTooLong);
      return { ...packTexts(rows, bounds), taken };
    } finally {
      const next = this.#waitingPieces.shift();
      if (next === undefined) this.#pieces--;
      else next();
    }
  }

  readLatest({ text, values }: BoundText): Promise<Rows> {
    return this.#options.server.read(this.#named(text), values);
  }

  write({ text, values }: BoundText): Promise<Rows> {
    return this.#written(() => this.#options.server.write(this.#named(text), values));
  }

  /** Rows that name the same columns are stored in batches, each write of one or more rows. */
  insert(sql: RowSql, { rows, version }: NewRows): Promise<Serials> {
    const [first = []] = rows;
    const inserted = sql.inserted(first);
    const isUniform = rows.every((row) => sql.inserted(row).length === inserted.length);
    if (!isUniform || sql.givesSerial(first)) return this.#insertGiven(sql, { rows, version });
    const text = insertText(sql, inserted);
    const queue =
      this.#creates.get(text) ??
      writeQueue<NewRows, Serials>(
        // The queue needs the server's error to find the write that failed.
        (writes) => this.#insertAll(sql, { text, inserted }, writes).finally(() => this.#wrote()),
        {
          concurrency: CREATE_CONCURRENCY,
          observer: this.#options.observer,
          maxWait: this.#options.server.maxWait,
        },
      );
    this.#creates.set(text, queue);
    return queue.submit({ rows, version });
  }

  async #insertAll(
    sql: RowSql,
    { text, inserted }: { readonly text: string; readonly inserted: readonly number[] },
    writes: readonly NewRows[],
  ): Promise<readonly Serials[]> {
    const values = columnsOf(sql, inserted, writes);
    const stored = await this.#options.server.write(this.#named(text), values);
    // Serials increase in the order in which the rows were given.
    const serials = stored.map(([serial]) => Number(serial)).sort((a, b) => a - b);
    let next = 0;
    return writes.map(({ rows }) => rows.map(() => (sql.hasSerial ? serials[next++] : undefined)));
  }

  /** Stores rows of which some give their serial; later ones must be higher than it. */
  async #insertGiven(sql: RowSql, { rows, version }: NewRows): Promise<Serials> {
    const serial = sql.serialName;
    // Rows name all columns, or all but the number.
    const texts = new Map<number, string>();
    const steps = rows.map((row): UnitStep => {
      const inserted = sql.inserted(row);
      const text = texts.get(inserted.length) ?? insertText(sql, inserted);
      texts.set(inserted.length, text);
      return { text, values: columnsOf(sql, inserted, [{ rows: [row], version }]) };
    });
    // A unit sends few statements at a time: to write a thousand would hold the event loop.
    const stored = await this.unit([...steps, ...this.afterGiven(sql)]).catch((error: unknown) => {
      throw error instanceof UnitError ? writeFailure(error.cause) : error;
    });
    return rows.map((_, i) => (serial === undefined ? undefined : Number(stored[i]?.[0]?.[0])));
  }

  insertMany(sql: RowSql, rows: readonly RowValues[], version: number) {
    const inserted = sql.inserted(rows[0] ?? []);
    const values = columnsOf(sql, inserted, [{ rows, version }]);
    return {
      steps: [{ text: insertText(sql, inserted), values }],
      // Serials increase in the order in which the rows were given.
      serials: ([stored = []]: readonly Rows[]) =>
        stored.map(([serial]) => Number(serial)).sort((a, b) => a - b),
    };
  }

  async insertFree(sql: RowSql, row: RowValues, version: number): Promise<boolean> {
    const inserted = sql.inserted(row);
    const key = sql.relation.key.map(name).join(', ');
    const text = insertText(sql, inserted, `ON CONFLICT (${key}) DO NOTHING`);
    const values = columnsOf(sql, inserted, [{ rows: [row], version }]);
    const after = sql.givesSerial(row) ? this.afterGiven(sql) : [];
    const [stored = []] = await this.writeAll([{ text, values }, ...after]);
    return stored.length > 0;
  }

  writeAll(steps: readonly (BoundText | Step)[]): Promise<readonly Rows[]> {
    const statements = steps.map((each): Steps[number] => {
      if ('text' in each) return [this.#named(each.text), each.values];
      const [{ name: queryName, postgres }, ...values] = each;
      return [{ name: queryName, text: postgres }, values];
    });
    return this.#written(() => this.#options.server.transaction(statements));
  }

  async unit(steps: readonly UnitStep[], isTrial = false): Promise<readonly Rows[]> {
    let failed: UnitError | undefined;
    let results: readonly Rows[] = [];
    const work = async (run: Connection['run']) => {
      const unit = new Unit(steps, ({ text }, values) => run(this.#named(text), values));
      results = await unit.results();
      failed = unit.failed;
      return failed === undefined && !isTrial;
    };
    await this.#written(() => this.#options.server.session(work));
    if (failed !== undefined) throw failed;
    return results;
  }

  textOf({ postgres }: Query): string {
    return postgres;
  }

  afterGiven(sql: RowSql): readonly BoundText[] {
    const { serialName } = sql;
    if (serialName === undefined) return [];
    const { table } = sql;
    const sequence = 'pg_get_serial_sequence($1, $2)';
    const max = `max(${name(serialName)})`;
    return [
      {
        text: `
          SELECT setval(${sequence}, ${max}) FROM ${table}
          HAVING ${max} > coalesce(pg_sequence_last_value(${sequence}::regclass), 0)`,
        values: [table, serialName],
      },
    ];
  }

  assigned({ table, serialName }: RowSql): string {
    return `currval(pg_get_serial_sequence(${textLiteral(table)}, ${textLiteral(serialName ?? '')}))`;
  }

  isConflict(error: unknown): boolean {
    const state = sqlState(error) ?? sqlState((Object(error) as { readonly cause?: unknown }).cause);
    return CONFLICTS.has(state) || state === RESTRICTED;
  }

  isUnfit(error: unknown): boolean {
    return UNFIT.test(sqlState(error) ?? '');
  }

  constraintOf(error: unknown): FoundConstraint | undefined {
    const own = sqlState(error) === undefined ? (Object(error) as { readonly cause?: unknown }).cause : error;
    const state = sqlState(own) ?? '';
    if (!REFUSALS.test(state)) return undefined;
    const { constraint: name, column } = own as { constraint?: string; column?: string };
    return { name, columns: column === undefined ? undefined : [column], isUnique: state === UNIQUE };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(Array.from(this.#creates.values(), (queue) => queue[Symbol.asyncDispose]()));
  }

  /** Awaits a write, after which this process reads from the primary for a while. */
  async #written<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await singleWrite(this.#options.observer, work).catch(refuseTooLong);
    } finally {
      this.#wrote();
    }
  }

  #wrote(): void {
    this.#options.reads.wrote();
    this.#options.onWritten();
  }

  /** A statement that connections prepare, unless there are too many shapes of statements. */
  #named(text: string): Statement {
    const known = this.#names.get(text);
    if (known !== undefined) return { name: known, text };
    if (this.#names.size >= MAX_PREPARED) return { text };
    const made = `row-${createHash('sha256').update(text).digest('base64url').slice(0, 32)}`;
    this.#names.set(text, made);
    return { name: made, text };
  }
}

/** Runs a statement in the time that a budget has left. Fails with StatementTimeError if it has none. */
async function within<T>(budget: StatementBudget, run: (most: number) => Promise<T>): Promise<T> {
  const most = budget.left(STATEMENT_TIMEOUT);
  if (most <= 0) throw new StatementTimeError();
  const stop = budget.start();
  try {
    return await run(most);
  } finally {
    stop();
  }
}

/** While more is left, the server is not told how much: its own limit of each statement is near enough. */
const UNTOLD = 0.9 * STATEMENT_TIMEOUT;

/** Runs a statement of a transaction that may take `most` milliseconds. */
async function timed(
  run: Connection['run'],
  most: number,
  statement: Statement,
  values: readonly unknown[],
): Promise<Rows> {
  if (most > UNTOLD) return run(statement, values);
  const timeout = run({ text: `SET LOCAL statement_timeout = ${Math.ceil(most)}` }, []);
  const [rows] = await Promise.all([run(statement, values), timeout]);
  return rows;
}

/** Rejects with a refusal of this process, which does not fail the connection, and throws other errors. */
function refusedBefore(reject: (error: StatementTimeError) => void): (error: unknown) => void {
  return (error) => {
    if (!(error instanceof StatementTimeError)) throw error;
    reject(error);
  };
}

/** Resumes a read. A limit that it reaches does not fail the connection. */
function resumed(reads: LevelReads<RowPage>, rows: Rows) {
  try {
    return reads.next(rows);
  } catch (error) {
    return { error };
  }
}

/** Statements of a unit that are sent before the results of all are there. */
const WINDOW = 16;

/** query_canceled: the statement took longer than `STATEMENT_TIMEOUT`. */
const TOO_LONG = '57014';

function refuseTooLong(error: unknown): never {
  const states = [error, (Object(error) as Error).cause].map(sqlState);
  throw states.includes(TOO_LONG) && !(error instanceof OutcomeUnknownError)
    ? new StatementTimeError(error)
    : error;
}

/** Runs the statements of a unit on a connection, each as soon as the results that it uses are there. */
class Unit {
  readonly #steps: readonly UnitStep[];
  readonly #run: (statement: UnitStep, values: readonly unknown[]) => Promise<Rows>;
  readonly #sent: Promise<Rows>[] = [];
  /** The results that have arrived; those of the others follow. */
  readonly #results: Rows[] = [];
  /** The size of the results so far. */
  #bytes = 0;
  /** The first statement that failed. */
  failed: UnitError | undefined;

  constructor(
    steps: readonly UnitStep[],
    run: (statement: UnitStep, values: readonly unknown[]) => Promise<Rows>,
  ) {
    this.#steps = steps;
    this.#run = run;
  }

  /** The results of all statements that ran; rejects with the server's error if the unit may succeed later. */
  async results(): Promise<readonly Rows[]> {
    for (const each of this.#steps) {
      const used = each.values.flatMap((value) => (value instanceof EarlierColumn ? [value.step + 1] : []));
      const before = await this.#settled(each.kept === undefined ? Math.max(0, ...used) : undefined);
      if (this.failed !== undefined) return [];
      const values = each.values.map((value, place) => {
        if (place === each.kept) return keptResults(before);
        return value instanceof EarlierColumn ? value.bind(before[value.step]?.[0]?.[value.column]) : value;
      });
      const running = this.#run(each, values);
      const nth = this.#sent.push(running) - 1;
      // Its failure is seen when it is awaited.
      const measured = running.then(
        (rows) => {
          this.#bytes += sizeOfRows(rows);
          if (this.#bytes > MAX_RESULTS) this.failed ??= new UnitError(nth, 'large');
        },
        () => undefined,
      );
      // Few are under way, since each may return a large row.
      if (this.#sent.length % WINDOW === 0) await measured;
      if (each.stops === undefined) continue;
      const results = await this.#settled();
      if (
        this.failed !== undefined ||
        each.stops === ((results.at(-1) ?? []).length > 0 ? 'found' : 'none')
      ) {
        return results;
      }
    }
    return this.#settled();
  }

  /** The results of the first statements, or of all that were sent, unless one has failed. */
  async #settled(count = this.#sent.length): Promise<readonly Rows[]> {
    const results = this.#results;
    for (let nth = results.length; nth < count; nth++) {
      const { least = 0, most = Number.POSITIVE_INFINITY } = this.#steps[nth] ?? {};
      try {
        const rows = (await this.#sent[nth]) ?? [];
        results.push(rows);
        if (rows.length < least) this.failed ??= new UnitError(nth, 'few');
        if (rows.length > most) this.failed ??= new UnitError(nth, 'many');
      } catch (error) {
        if (!isValueError(error) && sqlState(error) !== ABORTED) throw error;
        results.push([]);
        this.failed ??= new UnitError(nth, 'engine', error);
      }
    }
    return results;
  }
}

/** An insert of any number of rows, whose values are bound as one list per column, with their version. */
function insertText(sql: RowSql, inserted: readonly number[], conflict = ''): string {
  const names = sql.written(inserted);
  const types = [...inserted.map((i) => sql.storageAt(i).type), ...(sql.keepsVersion ? ['bigint'] : [])];
  const lists = types.map((type, i) => `$${i + 1}::${type}[]`);
  const returned = sql.serialName === undefined ? sql.version : name(sql.serialName);
  return `
    INSERT INTO ${sql.table} (${names.join(', ')}) OVERRIDING SYSTEM VALUE
    SELECT ${names.join(', ')} FROM unnest(${lists.join(', ')}) WITH ORDINALITY AS given (${names.join(', ')}, "_nth")
    ORDER BY "_nth" ${conflict} RETURNING ${returned}`;
}

/** The values of `insertText`. */
function columnsOf(sql: RowSql, inserted: readonly number[], writes: readonly NewRows[]): readonly Bound[] {
  const column = (i: number) => writes.flatMap(({ rows }) => rows.map((row) => sql.bindAt(i, row[i])));
  const given = inserted.map(column);
  return sql.keepsVersion
    ? [...given, writes.flatMap(({ rows, version }) => rows.map(() => version))]
    : given;
}
