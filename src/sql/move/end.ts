import type { MaybePromise } from '../../core/scheduler.ts';
import { type Relation, USERS } from '../../relations/relation.ts';
import { EVENT_TABLES } from '../changes/change-triggers.ts';
import { databaseAt } from '../database.ts';
import { MOVING } from '../migration-files.ts';
import { migrateRelations, planRelations } from '../schema/migrate.ts';
import { declaredTables, identifier } from '../schema/tables.ts';
import { type MovedRow, type MovedTable, type MoveEngine, MoveError, movedWith } from './tables.ts';

const IS_MARK = `substr(name, 1, ${MOVING.length}) = '${MOVING}'`;
const UNMARK = `DELETE FROM migrations WHERE ${IS_MARK}`;

/** The names of the tables of relations and of columns added to users, with commas between. The tables have versions. */
const DECLARED = {
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
      AND column_name NOT IN ('id', 'name', 'email', 'version')) AS declared (name)`,
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
  readonly relations: readonly Relation[];
  readonly tables: readonly MovedTable[];
  readonly #engine: MoveEngine;

  private constructor(engine: MoveEngine, relations: readonly Relation[], created: unknown, mark: unknown) {
    this.#engine = engine;
    this.relations = relations;
    this.tables = movedWith(relations);
    this.origin = `${engine.name}-${created}`;
    this.unfinished = mark === undefined ? undefined : String(mark).slice(MOVING.length);
  }

  /**
   * Opens a database. `declare` reads the declaration of relations: of a source, only if it has tables of
   * relations. Fails with DatabaseOpenError, or with MoveError if another process uses it or the tables of a
   * source are not those of the declaration.
   */
  static async open(
    url: string,
    which: 'source' | 'target',
    declare: () => MaybePromise<readonly Relation[]> = () => [],
  ): Promise<MoveEnd> {
    const { engine: name, place } = databaseAt(url);
    await using opening = new AsyncDisposableStack();
    const engine = opening.use(
      name === 'postgres'
        ? await (await import('./postgres-engine.ts')).openPostgresEngine(place, which)
        : (await import('./sqlite-engine.ts')).openSqliteEngine(place, which),
    );
    const isDeclared = which === 'target' || (await declaredIn(engine)).length > 0;
    const relations = isDeclared ? await declare() : [];
    if (which === 'source' && relations.length > 0) await requirePlanned(engine, relations);
    await engine.begin(movedWith(relations));
    const created = await engine.value('SELECT applied_at FROM migrations ORDER BY name LIMIT 1');
    const end = new MoveEnd(
      engine,
      relations,
      created,
      await engine.value(`SELECT name FROM migrations WHERE ${IS_MARK}`),
    );
    opening.move();
    return end;
  }

  /** The number of rows of a table, or of all. */
  async count(...tables: readonly MovedTable[]): Promise<number> {
    let rows = 0;
    for (const { name } of tables.length === 0 ? this.tables : tables) {
      if (!(await this.#engine.hasTable(name))) continue;
      rows += Number(await this.#engine.value(`SELECT count(*) FROM ${identifier(name)}`));
    }
    return rows;
  }

  /** The tables of relations and the columns of users that are not declared, which a move leaves behind. */
  async left(): Promise<readonly string[]> {
    const known = this.relations.flatMap(({ name, table, columns }) =>
      name === USERS ? columns.map((column) => `users.${column.name}`) : [table],
    );
    return (await declaredIn(this.#engine)).filter((name) => !known.includes(name));
  }

  /** The key of the last row; undefined if there are no rows. */
  last(table: MovedTable): MaybePromise<MovedRow | undefined> {
    return this.#engine.last(table);
  }

  /** Whether the tables of relations are those of the declaration. */
  async isPlanned(): Promise<boolean> {
    if (this.relations.length === 0) return true;
    return (await planRelations(this.#engine.session, this.relations)).steps.length === 0;
  }

  /**
   * Makes the tables of relations, which record no changes until `finish`. A row may come before those that it
   * refers to: on PostgreSQL without foreign keys, on SQLite with keys that are not enforced.
   */
  async prepare(): Promise<void> {
    const { session, name } = this.#engine;
    if (this.relations.length === 0) return;
    const tables = declaredTables(name, this.relations).map((table) => ({
      ...table,
      recorded: undefined,
      foreignKeys: name === 'postgres' ? [] : table.foreignKeys,
    }));
    await session.exclusively(async () => {
      for (const step of (await session.plan(tables)).steps) await session.apply(step);
    });
  }

  /** A batch of rows with keys greater than that of a row, in key order; empty at the end. */
  read(table: MovedTable, after: MovedRow | undefined): MaybePromise<readonly MovedRow[]> {
    return this.#engine.read(table, after);
  }

  /** Stores rows with their keys in one transaction; they are durable once it returns or resolves. */
  write(table: MovedTable, rows: readonly MovedRow[]): MaybePromise<unknown> {
    return this.#engine.write(table, rows);
  }

  /** The highest key ever used; 0 if there is none. */
  counter(table: MovedTable): MaybePromise<number> {
    return table.isNumbered ? this.#engine.counter(table) : 0;
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
    await this.#engine.commit(...this.#engine.clear(this.tables), UNMARK);
  }

  /** Removes the mark, which opens the database for services. */
  async finish(): Promise<void> {
    if (this.relations.length > 0) {
      const options = { rewrite: false, maxPause: Number.POSITIVE_INFINITY };
      await migrateRelations(this.#engine.session, this.relations, options);
    }
    const { events, relay } = EVENT_TABLES;
    const isRecorded = await this.#engine.hasTable(events);
    await this.#engine.commit(
      ...this.#engine.derive,
      'UPDATE retention_cursors SET at = 0, seq = 0',
      // The moved rows are not new changes, so followers start here.
      'DELETE FROM user_events',
      'DELETE FROM user_relay',
      `INSERT INTO user_events (type, at, user_id, name, email) VALUES ('start', ${Date.now()}, 0, '', '')`,
      ...(isRecorded
        ? [
            `DELETE FROM ${events}`,
            `DELETE FROM ${relay}`,
            `INSERT INTO ${events} (relation, type, at, "row") VALUES ('', 'start', ${Date.now()}, '{}')`,
          ]
        : []),
    );
    await this.#engine.settle(this.tables);
    await this.#engine.commit(UNMARK);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#engine[Symbol.asyncDispose]();
  }
}

/** The tables of relations and the columns added to users. */
async function declaredIn(engine: MoveEngine): Promise<readonly string[]> {
  const names = await engine.value(DECLARED[engine.name]);
  return names === null || names === undefined ? [] : String(names).split(',');
}

async function requirePlanned({ session }: MoveEngine, relations: readonly Relation[]): Promise<void> {
  const { steps } = await planRelations(session, relations);
  if (steps.length === 0) return;
  throw new MoveError(
    'The tables of relations in the source are not those of the declaration. Run "portico migrate" on it first.',
  );
}
