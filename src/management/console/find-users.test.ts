import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openSqlite } from '../../database/sqlite/open.ts';
import { findUsers } from './find-users.ts';

test('pages have all users once, in both directions, with a text or without', async () => {
  await using database = openSqlite(':memory:');
  const { users } = database;
  await Promise.all(
    Array.from({ length: 2_500 }, (_, i) =>
      users.create({ name: i % 50 === 7 ? `Ada ${i}` : `user ${i}`, email: `u${i}@example.org` }),
    ),
  );
  for (let id = 1_001; id < 2_200; id++) await users.remove(id);
  const left = Array.from({ length: 2_500 }, (_, i) => i + 1).filter((id) => id <= 1_000 || id >= 2_200);
  const ada = left.filter((id) => (id - 1) % 50 === 7);
  for (const [text, expected] of [
    ['', left],
    ['aDA', ada],
    ['nobody', []],
  ] as const) {
    for (const descending of [false, true]) {
      const found: number[] = [];
      let cursor: number | undefined;
      do {
        const page = await findUsers(users, { text, descending, limit: 60, cursor });
        assert.ok(page.items.length <= 60);
        found.push(...page.items.map(({ id }) => id));
        cursor = page.next ?? undefined;
      } while (cursor !== undefined);
      assert.deepEqual(found, descending ? expected.toReversed() : expected);
    }
  }
});
