import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, describe, test } from 'node:test';
import { openDatabase } from '../../src/sql/open.ts';
import { withoutPostgres } from '../support/databases.ts';
import { type PostgresDatabases, sharedPostgres } from '../support/postgres.ts';
import { settleAll, storeDeliveries } from '../support/stored-deliveries.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const COUNT = 'SELECT count(*) AS n FROM attempts';

/** Has the inbox at `url` make attempts and remove some of their deliveries; `count` is asked before and after. */
async function removed(url: string, count: () => Promise<number> | number): Promise<readonly number[]> {
  await using database = await openDatabase(url);
  const counts = [];
  for (const event of ['old', 'new']) {
    await storeDeliveries(database, event, 30);
    await settleAll(database, event, 'dead');
    counts.push(await count());
    const rule = { kind: 'ended', before: Date.now() + 2_000 } as const;
    while (event === 'old' && !(await database.inbox.prune(rule)).isLast);
  }
  return [...counts, await count()];
}

describe('attempts of removed deliveries', () => {
  let server: PostgresDatabases | undefined;
  after(async () => server?.[Symbol.asyncDispose]());

  test('are gone from SQLite', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'test.db');
    const count = () => {
      using db = new DatabaseSync(file, { readOnly: true, timeout: 5_000 });
      return Number(db.prepare(COUNT).get()?.n);
    };
    assert.deepEqual(await removed(`sqlite:${file}`, count), [30, 30, 30]);
  });

  test('are gone from PostgreSQL', { skip: withoutPostgres ?? false }, async () => {
    const own = await sharedPostgres();
    server = own;
    const url = await own.createDatabase();
    const count = async () => Number((await own.sql(COUNT, url))[0]?.[0]);
    assert.deepEqual(await removed(url, count), [30, 30, 30]);
  });
});
