import { join } from 'node:path';
import { after } from 'node:test';
import type { Database } from '../../src/sql/database.ts';
import { openDatabase } from '../../src/sql/open.ts';
import { missingPostgres, type PostgresDatabases, sharedPostgres } from './postgres.ts';
import { temporaryFolder } from './temporary-folder.ts';

/** A database of its own for one test. */
export interface TestDatabase extends AsyncDisposable {
  /** The database as it is open now. */
  readonly current: Database;
  /** Closes and opens it again; undefined for one that does not outlive its process. */
  readonly reopen: (() => Promise<void>) | undefined;
  /** Opens it as another process would, beside the first one; undefined for one that has a single process. */
  readonly second: (() => Promise<Database>) | undefined;
}

type OpenTestDatabase = () => Promise<TestDatabase>;

/** A database that `url` names, until it is disposed of; `cleanup` removes it. */
async function openAt(url: string, cleanup: () => Promise<void>): Promise<TestDatabase> {
  let current = await openDatabase(url);
  return {
    get current() {
      return current;
    },
    second: async () => openDatabase(url),
    async reopen() {
      await current[Symbol.asyncDispose]();
      current = await openDatabase(url);
    },
    async [Symbol.asyncDispose]() {
      await current[Symbol.asyncDispose]();
      await cleanup();
    },
  };
}

const embedded: Readonly<Record<string, OpenTestDatabase>> = {
  'sqlite in memory': async () => {
    const current = openDatabase('sqlite::memory:');
    return {
      current,
      reopen: undefined,
      second: undefined,
      [Symbol.asyncDispose]: () => current[Symbol.asyncDispose](),
    };
  },
  'sqlite file': async () => {
    const folder = await temporaryFolder();
    return openAt(`sqlite:${join(folder.path, 'test.db')}`, async () => folder[Symbol.asyncDispose]());
  },
};

/** The databases of this process, made by the first test that needs one. */
let server: Promise<PostgresDatabases> | undefined;
after(async () => {
  await (await server)?.[Symbol.asyncDispose]();
});

/** The URL of an empty PostgreSQL database. */
export async function postgresUrl(): Promise<string> {
  server ??= sharedPostgres();
  return (await server).createSchema();
}

/** The URL of an empty PostgreSQL database that shares nothing, extensions neither. */
export async function postgresDatabase(): Promise<string> {
  server ??= sharedPostgres();
  return (await server).createDatabase();
}

const distributed: Readonly<Record<string, OpenTestDatabase>> = {
  postgres: async () => openAt(await postgresUrl(), async () => {}),
};

/** Why the tests do not run on PostgreSQL; undefined when they do. */
export const withoutPostgres = await missingPostgres();

/** The engines that every database test runs on. */
export const engines: Readonly<Record<string, OpenTestDatabase>> = {
  ...embedded,
  ...(withoutPostgres === undefined ? distributed : {}),
};

/** The URLs of empty databases, by engine; each is removed when the test that asks has ended. */
export const engineUrls: Readonly<Record<string, () => Promise<string>>> = {
  SQLite: async () => {
    const folder = await temporaryFolder();
    after(() => folder[Symbol.asyncDispose]());
    return `sqlite:${join(folder.path, 'test.db')}`;
  },
  ...(withoutPostgres === undefined && { PostgreSQL: postgresUrl }),
};
