import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ImportError } from '../../src/relations/import-readers.ts';
import type { DatabaseUserStore } from '../../src/relations/user-stores.ts';
import { engines } from '../support/databases.ts';
import { followAll } from '../support/user-events.ts';

const usersOf = (count: number) => Array.from({ length: count }, (_, i) => ({ name: `n${i}`, email: 'e@x' }));

for (const [engine, open] of Object.entries(engines)) {
  describe(`imports in ${engine}`, () => {
    test('subscribers get each user of an import that is larger than what may wait for them', async () => {
      await using database = await open();
      const { users, userFeed } = database.current;
      const feed = await userFeed.subscribe('created');
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

    test('its events are stored with the users, or not at all', async () => {
      await using database = await open();
      const { users, userFeed } = database.current;
      const { start } = await userFeed.follow();
      await users.importUsers(usersOf(3), { key: await begun(users, 'k'), from: 0, to: 3, digest: 'd' });
      const late = { key: 'k', from: 0, to: 7, digest: 'd' };
      await assert.rejects(users.importUsers(usersOf(2), late));
      await assert.rejects(users.importAll(usersOf(2), late));
      await users.importAll(usersOf(2));
      await database.reopen?.();
      const events = await database.current.userFeed.follow(start);
      const last = await database.current.users.create({ name: 'end', email: 'e@x' });
      const told = await followAll(events, `"id":${last},`);
      assert.deepEqual(
        told.map(({ type, json }) => `${type} ${JSON.parse(json).name}`),
        ['n0', 'n1', 'n2', 'n0', 'n1', 'end'].map((name) => `created ${name}`),
      );
      await events.return();
    });

    test('another process on the database sees the users of an import', async () => {
      await using database = await open();
      if (database.second === undefined) return;
      await using other = await database.second();
      const feed = await other.userFeed.subscribe('created');
      const stored = database.current.users.importUsers(usersOf(1_500));
      const got: string[] = [];
      for await (const { id } of feed) if (got.push(id) === 1_500) break;
      assert.deepEqual(got, (await stored).map(String));
    });

    test('a position moves with the users; from another one nothing is stored', async () => {
      await using database = await open();
      const { users } = database.current;
      assert.equal((await users.beginImport('k')).line, 0);
      await users.importUsers(usersOf(2), { key: 'k', from: 0, to: 5, digest: 'd' });
      assert.equal((await users.beginImport('k')).line, 5);
      const moved = (error: unknown) => error instanceof ImportError && error.code === 'IMPORT_IN_PROGRESS';
      const late = { key: 'k', from: 0, to: 7, digest: 'd' };
      await assert.rejects(users.importUsers(usersOf(2), late), moved);
      await assert.rejects(users.importAll(usersOf(2), late), moved);
      assert.equal((await users.beginImport('k')).line, 5);
      assert.deepEqual(await users.importAll(usersOf(1), { key: 'k', from: 5, to: 9, digest: 'd' }), {
        ids: [await users.lastId()],
      });
      assert.equal((await users.beginImport('k')).line, 9);
      // Lines that are all refused move it too.
      assert.deepEqual(await users.importUsers([], { key: 'k', from: 9, to: 12, digest: 'd' }), []);
      assert.equal((await users.beginImport('k')).line, 12);
      assert.equal((await users.page('json', 0, 1_000)).count, 3);
    });
  });
}

async function begun(users: DatabaseUserStore, key: string): Promise<string> {
  await users.beginImport(key);
  return key;
}
