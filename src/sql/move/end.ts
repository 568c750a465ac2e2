import type { MaybePromise } from '../../core/scheduler.ts';
import { databaseAt } from '../database.ts';
import { MOVING } from '../migration-files.ts';
import { type MovedRow, type MovedTable, type MoveEngine, movedTables } from './tables.ts';

const IS_MARK = `substr(name, 1, ${MOVING.length}) = '${MOVING}'`;
const UNMARK = `DELETE FROM migrations WHERE ${IS_MARK}`;

/** The names of what a move leaves behind, with commas between. The tables of relations have versions. */
const LEFT = {
  sqlite: `SELECT group_concat(name, ',') FROM (
    SELECT tables.name FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns
    WHERE tables.type = 'table' AND columns.name = '_version'
    UNION ALL SELECT 'users.' || name FROM pragma_table_info('users')
    WHERE name NOT IN ('id', 'name', 'email', 'version') ORDER BY 1)`,
  postgres: `SELECT string_agg(name, ',' ORDER BY name) FROM (
    SELECT table_name::text FROM information_schema.columns
    WHERE table_schema = current_schema() AND column_name = '_version'
    UNION ALL SELECT 'users.' || column_name FROM information_schema.columns
    WHERE table_schema = current_schema() AND table_name = 'users'
      AND column_name NOT IN ('id', 'name', 'email', 'version')) AS left_behind (name)`,
} as const;

/**
 * One of the two databases of a move, locked against services. The caller that opened it must dispose of it. Until
 * the move is finished, only another move can open its target.
 */
export class MoveEnd implements AsyncDisposable {
  /** Identifies this database and its copies. */
  readonly origin: string;
  /** The origin of the source of the unfinished move into this database. */
  readonly unfinished: string | undefined;
  readonly #engine: MoveEngine;

  private constructor(engine: MoveEngine, created: unknown, mark: unknown) {
    this.#engine = engine;
    this.origin = `${engine.name}-${created}`;
    this.unfinished = mark === undefined ? undefined : String(mark).slice(MOVING.length);
  }

  /** Opens a database. Fails with DatabaseOpenError, or with MoveError if another process uses it. */
  static async open(url: string, which: 'source' | 'target'): Promise<MoveEnd> {
    const { engine: name, place } = databaseAt(url);
    await using opening = new AsyncDisposableStack();
    const engine = opening.use(
      name === 'postgres'
        ? await (await import('./postgres-engine.ts')).openPostgresEngine(place, which)
        : (await import('./sqlite-engine.ts')).openSqliteEngine(place, which),
    );
    const created = await engine.value('SELECT applied_at FROM migrations ORDER BY name LIMIT 1');
    const end = new MoveEnd(
      engine,
      created,
      await engine.value(`SELECT name FROM migrations WHERE ${IS_MARK}`),
    );
    opening.move();
    return end;
  }

  /** The number of rows of a table, or of all. */
  async count(...tables: readonly MovedTable[]): Promise<number> {
    let rows = 0;
    for (const { name } of tables.length === 0 ? movedTables : tables) {
      rows += Number(await this.#engine.value(`SELECT count(*) FROM ${name}`));
    }
    return rows;
  }

  /** The tables of relations and the columns that a declaration adds to users, which a move leaves behind. */
  async left(): Promise<readonly string[]> {
    const names = await this.#engine.value(LEFT[this.#engine.name]);
    return names === null || names === undefined ? [] : String(names).split(',');
  }

  /** The highest existing key; 0 if there are no rows. */
  async last({ name, key }: MovedTable): Promise<number> {
    return Number((await this.#engine.value(`SELECT max(${key}) FROM ${name}`)) ?? 0);
  }

  /** A batch of rows with keys greater than `after`, in key order; empty at the end. */
  read(table: MovedTable, after: number): MaybePromise<readonly MovedRow[]> {
    return this.#engine.read(table, after);
  }

  /** Stores rows with their keys in one transaction; they are durable once it returns or resolves. */
  write(table: MovedTable, rows: readonly MovedRow[]): MaybePromise<unknown> {
    return this.#engine.write(table, rows);
  }

  /** The highest key ever used; 0 if there is none. */
  counter(table: MovedTable): MaybePromise<number> {
    return this.#engine.counter(table);
  }

  /** Reserves all keys up to `counter`. */
  async setCounter(table: MovedTable, counter: number): Promise<void> {
    if (counter > 0) await this.#engine.setCounter(table, counter);
  }

  /** Fails with MoveError if a service uses the database. */
  checkAlone(): MaybePromise<void> {
    return this.#engine.checkAlone();
  }

  /** Marks the database as the target of a move. Fails with MoveError if a service uses it. */
  async begin(origin: string): Promise<void> {
    await this.#engine.commit(
      `INSERT INTO migrations (name, applied_at) VALUES ('${MOVING}${origin}', ${Date.now()})`,
    );
    try {
      // A service that starts later sees the mark.
      await this.checkAlone();
    } catch (error) {
      await this.#engine.commit(UNMARK);
      throw error;
    }
  }

  /** Removes all rows. */
  async clear(): Promise<void> {
    await this.#engine.commit(...this.#engine.clear, UNMARK);
  }

  /** Removes the mark, which opens the database for services. */
  async finish(): Promise<void> {
    await this.#engine.commit(
      ...this.#engine.derive,
      'UPDATE retention_cursors SET at = 0, seq = 0',
      // The moved users are not new changes, so followers start here.
      'DELETE FROM user_events',
      'DELETE FROM user_relay',
      `INSERT INTO user_events (type, at, user_id, name, email) VALUES ('start', ${Date.now()}, 0, '', '')`,
    );
    await this.#engine.settle();
    await this.#engine.commit(UNMARK);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#engine[Symbol.asyncDispose]();
  }
}
