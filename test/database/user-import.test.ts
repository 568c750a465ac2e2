import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ImportError } from '../../src/users/import/import-error.ts';
import { engines } from '../support/databases.ts';

const usersOf = (count: number) => Array.from({ length: count }, (_, i) => ({ name: `n${i}`, email: 'e@x' }));

for (const [engine, open] of Object.entries(engines)) {
  describe(`imports in ${engine}`, () => {
    test('subscribers get each user of an import that is larger than what may wait for them', async () => {
      await using database = await open();
      const { users, userFeed } = database.current;
      const feed = await userFeed.subscribe();
      const stored = users.importUsers(usersOf(1_500));
      const got: string[] = [];
      for await (const { id } of feed) if (got.push(id) === 1_500) break;
      const ids = (await stored).map(String);
      assert.deepEqual(got, ids);
      assert.deepEqual(
        ids,
        usersOf(1_500).map((_, i) => String(i + 1)),
      );
    });

    test('a position moves with the users; from another one nothing is stored', async () => {
      await using database = await open();
      const { users } = database.current;
      assert.equal(await users.beginImport('k'), 0);
      await users.importUsers(usersOf(2), { key: 'k', from: 0, to: 5 });
      assert.equal(await users.beginImport('k'), 5);
      const moved = (error: unknown) => error instanceof ImportError && error.code === 'IMPORT_IN_PROGRESS';
      const late = { key: 'k', from: 0, to: 7 };
      await assert.rejects(users.importUsers(usersOf(2), late), moved);
      await assert.rejects(users.importAll(usersOf(2), late), moved);
      assert.equal(await users.beginImport('k'), 5);
      assert.deepEqual(await users.importAll(usersOf(1), { key: 'k', from: 5, to: 9 }), {
        ids: [await users.lastId()],
      });
      assert.equal(await users.beginImport('k'), 9);
      // Lines that are all refused move it too.
      assert.deepEqual(await users.importUsers([], { key: 'k', from: 9, to: 12 }), []);
      assert.equal(await users.beginImport('k'), 12);
      assert.equal((await users.page(0, 1_000, 100)).count, 3);
    });
  });
}
