import { join } from 'node:path';
import type { Database } from '../../src/database/database.ts';
import { openDatabase } from '../../src/database/open-database.ts';
import { temporaryFolder } from './temporary-folder.ts';

/** A database of its own for one test. */
export interface TestDatabase extends AsyncDisposable {
  /** The database as it is open now. */
  readonly current: Database;
  /** Closes and opens it again; undefined for one that does not outlive its process. */
  readonly reopen: (() => Promise<void>) | undefined;
}

/** The engines that every database test runs on. */
export const engines: Readonly<Record<string, () => Promise<TestDatabase>>> = {
  'sqlite in memory': async () => {
    const current = openDatabase('sqlite::memory:');
    return { current, reopen: undefined, [Symbol.asyncDispose]: () => current[Symbol.asyncDispose]() };
  },
  'sqlite file': async () => {
    const folder = await temporaryFolder();
    const url = `sqlite:${join(folder.path, 'test.db')}`;
    let current = openDatabase(url);
    return {
      get current() {
        return current;
      },
      async reopen() {
        await current[Symbol.asyncDispose]();
        current = openDatabase(url);
      },
      async [Symbol.asyncDispose]() {
        await current[Symbol.asyncDispose]();
        await folder[Symbol.asyncDispose]();
      },
    };
  },
};
