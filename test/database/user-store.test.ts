import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { PAGE_BYTES, userPages } from '../../src/relations/lists.ts';
import type { DatabaseUserStore } from '../../src/relations/user-stores.ts';
import { engines } from '../support/databases.ts';
import { rounds } from '../support/proof-settings.ts';
import { anyCharacter } from '../support/random.ts';

const LAST = Number.MAX_SAFE_INTEGER;

async function readAll(users: DatabaseUserStore): Promise<unknown[]> {
  const all: unknown[] = [];
  for await (const page of userPages(users, 'json', { after: 0, upTo: LAST })) {
    const parsed = JSON.parse(`[${page.bytes.subarray(1)}]`) as unknown[];
    assert.equal(parsed.length, page.count);
    all.push(...parsed);
  }
  return all;
}

for (const [engine, open] of Object.entries(engines)) {
  describe(`users in ${engine}`, () => {
    test('a created user is read back, as JSON with its keys in order', async () => {
      await using database = await open();
      const { users } = database.current;
      const id = await users.create({ name: 'Ada', email: 'ada@example.com' });
      assert.equal(await users.readJson(id), `{"id":${id},"name":"Ada","email":"ada@example.com"}`);
      assert.equal(await users.readJson(id + 1), undefined);
    });

    test('update and remove tell whether the user was there', async () => {
      await using database = await open();
      const { users } = database.current;
      const id = await users.create({ name: 'a', email: 'a@b' });
      assert.equal(await users.update(id, { name: 'c', email: 'c@d' }), true);
      assert.match((await users.readJson(id)) ?? '', /"name":"c"/);
      assert.equal(await users.update(id + 1, { name: 'c', email: 'c@d' }), false);
      assert.equal(await users.remove(id), true);
      assert.equal(await users.remove(id), false);
      assert.equal(await users.readJson(id), undefined);
    });

    test('an id is never used twice, the highest and after a restart neither', async () => {
      await using database = await open();
      const first = await database.current.users.create({ name: 'a', email: 'a@b' });
      await database.current.users.remove(first);
      await database.reopen?.();
      const second = await database.current.users.create({ name: 'a', email: 'a@b' });
      assert.ok(second > first);
    });

    test('pages follow each other by id, without gap or repetition', async () => {
      await using database = await open();
      const { users } = database.current;
      const ids = await Promise.all(
        // The first hundred are small, those behind as large as users can be.
        Array.from({ length: 200 }, (_, i) =>
          users.create({ name: i < 100 ? `n${i}` : '\u0001'.repeat(500), email: 'a@b' }),
        ),
      );
      await users.remove(ids[20] ?? 0);
      const expected = ids.filter((_, i) => i !== 20).sort((a, b) => a - b);
      const all = (await readAll(users)) as { id: number }[];
      assert.deepEqual(
        all.map(({ id }) => id),
        expected,
      );
      assert.equal((await users.page('json', 0, expected[4] ?? 0)).count, 5);
      assert.equal(await users.lastId(), expected.at(-1));
    });

    test('pages are sized by bytes, whatever the users are like', async () => {
      await using database = await open();
      const { users } = database.current;
      /** Twelve bytes of JSON for each of its characters, or one. */
      const user = (size: number, isWide: boolean) => ({
        name: (isWide ? '\u0001' : 'a').repeat(size),
        email: 'a@b',
      });
      const kinds = [user(10, false), user(500, false), user(500, true), user(1, false)];
      for (const each of kinds) await users.importUsers(Array.from({ length: 400 }, () => each));
      for (let round = 0; round < 2; round++) {
        const sizes: number[] = [];
        for await (const page of userPages(users, 'json', { after: 0, upTo: LAST }))
          sizes.push(page.bytes.length);
        const total = sizes.reduce((sum, size) => sum + size, 0);
        // Behind a page of small users one may have some that are larger than was expected.
        assert.ok(
          sizes.every((size) => size < 20 * PAGE_BYTES),
          `${sizes}`,
        );
        assert.ok(sizes.filter((size) => size > PAGE_BYTES + 6_000).length <= kinds.length, `${sizes}`);
        assert.ok(sizes.length > 0.5 * (total / PAGE_BYTES), `${sizes}`);
      }
    });

    test('texts of any script come back byte for byte', async () => {
      await using database = await open();
      const { users } = database.current;
      const text = fc.string({ unit: anyCharacter, minLength: 1 }).filter((s) => !s.includes('\0'));
      await fc.assert(
        fc.asyncProperty(text, text, async (name, email) => {
          const id = await users.create({ name, email });
          assert.deepEqual(JSON.parse((await users.readJson(id)) ?? ''), { id, name, email });
          const page = await users.page('json', id - 1, id);
          assert.deepEqual(JSON.parse(String(page.bytes.subarray(1))), { id, name, email });
        }),
        { numRuns: rounds(300) },
      );
    });

    test('any sequence of operations leaves what a map would hold', async () => {
      await using database = await open();
      const operation = fc.record({
        kind: fc.constantFrom('create', 'update', 'remove', 'reopen'),
        name: fc.string({ minLength: 1, maxLength: 5 }).filter((s) => !s.includes('\0')),
        pick: fc.nat(),
      });
      await fc.assert(
        fc.asyncProperty(fc.array(operation, { maxLength: 25 }), async (operations) => {
          const { users } = database.current;
          for (const { id } of (await readAll(users)) as { id: number }[]) await users.remove(id);
          const model = new Map<number, { id: number; name: string; email: string }>();
          for (const { kind, name, pick } of operations) {
            const ids = [...model.keys()];
            const id = ids[pick % Math.max(ids.length, 1)] ?? 1_000_000;
            const user = { name, email: 'a@b' };
            if (kind === 'create') {
              const created = await database.current.users.create(user);
              assert.ok(!model.has(created));
              model.set(created, { id: created, ...user });
            } else if (kind === 'update') {
              assert.equal(await database.current.users.update(id, user), model.has(id));
              if (model.has(id)) model.set(id, { id, ...user });
            } else if (kind === 'remove') {
              assert.equal(await database.current.users.remove(id), model.delete(id));
            } else if (pick % 5 === 0) await database.reopen?.();
          }
          assert.deepEqual(await readAll(database.current.users), [...model.values()]);
        }),
        { numRuns: rounds(40) },
      );
    });
  });
}
