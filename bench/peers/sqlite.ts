import { DatabaseSync } from 'node:sqlite';

/** The common interface of both drivers. */
export interface Database {
  exec(sql: string): unknown;
  prepare(sql: string): Statement;
}

export interface Statement {
  get(...values: readonly (string | number)[]): unknown;
  all(...values: readonly (string | number)[]): readonly unknown[];
  run(...values: readonly (string | number)[]): unknown;
}

/** Opens a file durably: write-ahead log, a sync at each commit. */
export async function openDatabase(file: string): Promise<Database> {
  const db = process.env.SQLITE === 'better-sqlite3' ? await betterSqlite(file) : new DatabaseSync(file);
  db.exec('PRAGMA journal_mode=WAL');
  db.exec('PRAGMA synchronous=FULL');
  db.exec('PRAGMA busy_timeout=5000');
  return db;
}

async function betterSqlite(file: string): Promise<Database> {
  const { default: BetterSqlite } = (await import('better-sqlite3' as string)) as {
    readonly default: new (file: string) => Database;
  };
  return new BetterSqlite(file);
}
