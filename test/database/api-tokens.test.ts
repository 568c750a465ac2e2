import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MAX_TOKENS, type NewToken } from '../../src/sql/stores/access-stores.ts';
import { engines } from '../support/databases.ts';

const token = (name: string, digest = `digest of ${name}`): NewToken => ({
  name,
  digest,
  scopes: ['users:read', 'other'],
  createdAt: 5,
  expiresAt: null,
});

for (const [engine, open] of Object.entries(engines)) {
  describe(`tokens in ${engine}`, () => {
    test('a token is stored under a name that no other has, until it is revoked', async () => {
      await using database = await open();
      const { apiTokens } = database.current;
      assert.equal(await apiTokens.create({ ...token('ci'), expiresAt: 9 }), true);
      assert.equal(await apiTokens.create(token('ci', 'another')), false);
      assert.equal(await apiTokens.create(token('other', 'digest of ci')), false);
      const expected = { ...token('ci'), expiresAt: 9, revokedAt: null, usedAt: null };
      assert.deepEqual(await apiTokens.live(), [expected]);

      assert.equal(await apiTokens.revoke('ci', 7), true);
      assert.equal(await apiTokens.revoke('ci', 8), false);
      assert.equal(await apiTokens.revoke('none', 8), false);
      assert.deepEqual(await apiTokens.live(), []);
      assert.deepEqual(await apiTokens.list(), [{ ...expected, revokedAt: 7 }]);
      assert.equal(await apiTokens.create(token('ci', 'another')), true);
      assert.equal((await apiTokens.list()).length, 2);
    });

    test('a last use is never set back', async () => {
      await using database = await open();
      const { apiTokens } = database.current;
      await apiTokens.create(token('a'));
      await apiTokens.create(token('b'));
      const used = async () => (await apiTokens.live()).map(({ usedAt }) => usedAt);
      await apiTokens.noteUses(
        new Map([
          ['digest of a', 10],
          ['unknown', 10],
        ]),
      );
      assert.deepEqual(await used(), [10, null]);
      await apiTokens.noteUses(
        new Map([
          ['digest of a', 9],
          ['digest of b', 11],
        ]),
      );
      assert.deepEqual(await used(), [10, 11]);
      await apiTokens.noteUses(new Map());
      assert.deepEqual(await used(), [10, 11]);
    });

    test('there is a limit on the tokens that are not revoked', async () => {
      await using database = await open();
      const { apiTokens } = database.current;
      const made: boolean[] = [];
      for (let i = 0; i < MAX_TOKENS; i += 50) {
        made.push(
          ...(await Promise.all(Array.from({ length: 50 }, (_, j) => apiTokens.create(token(`t${i + j}`))))),
        );
      }
      assert.ok(made.every(Boolean));
      assert.equal(await apiTokens.create(token('more')), false);
      await apiTokens.revoke('t7', 1);
      assert.equal(await apiTokens.create(token('more')), true);
    });
  });
}
