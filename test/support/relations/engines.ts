import { DatabaseSync } from 'node:sqlite';
import { Connection } from '../../../src/sql/postgres-pool/connection.ts';
import type { Engine } from '../../../src/sql/schema/tables.ts';
import { StatementTime } from '../../../src/sql/statement-time.ts';
import { postgresUrl, withoutPostgres } from '../databases.ts';

/** A database without tables, through a plain connection. */
export type BareDatabase = AsyncDisposable & {
  readonly engine: Engine;
  run(sql: string): Promise<void>;
  rows(sql: string): Promise<readonly (readonly unknown[])[]>;
} & (
    | { readonly engine: 'sqlite'; readonly db: DatabaseSync }
    | { readonly engine: 'postgres'; readonly db: Connection }
  );

async function openSqlite(): Promise<BareDatabase> {
  const db = new DatabaseSync(':memory:');
  // Its function is in the statements of lists.
  const time = new StatementTime(db);
  return {
    engine: 'sqlite',
    db,
    async run(sql) {
      db.exec(sql);
    },
    async rows(sql) {
      const statement = db.prepare(sql);
      statement.setReturnArrays(true);
      time.begin();
      return statement.all() as unknown as unknown[][];
    },
    [Symbol.asyncDispose]: async () => db.close(),
  };
}

async function openPostgres(): Promise<BareDatabase> {
  const db = await Connection.open(await postgresUrl());
  return {
    engine: 'postgres',
    db,
    async run(sql) {
      await db.run({ text: sql }, undefined);
    },
    rows: (sql) => db.run({ text: sql }, []),
    [Symbol.asyncDispose]: () => db[Symbol.asyncDispose](),
  };
}

/** How each engine opens a database for a test of the schema; PostgreSQL only where there is one. */
export const bareEngines: Readonly<Partial<Record<Engine, () => Promise<BareDatabase>>>> = {
  sqlite: openSqlite,
  ...(withoutPostgres === undefined ? { postgres: openPostgres } : {}),
};
