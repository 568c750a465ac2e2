import assert from 'node:assert/strict';
import { createHook } from 'node:async_hooks';
import { test } from 'node:test';
import { EmptySecretError } from './secret-equal.ts';
import { UserNameError, userTable } from './user-table.ts';

// Cheap ones of the passwords "one" and "two", so that the tests are quick.
const ONE = '$scrypt$ln=4,r=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$Gv8AthZ78s5gdnV7aF64AQ';
const TWO = '$argon2id$v=19$m=8,t=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$Q+ROdKwWtuclt2OgTW5bkw';

test('a user comes in with exactly their own name and password', () => {
  const { byPassword, byHash } = userTable([
    { user: 'ann', password: 'a:b', roles: ['ops'] },
    { user: 'bob', password: 'secret', roles: [] },
    { user: 'ann', password: 'next', roles: ['admin'] },
  ]);
  const login = (user: string, password: string) => byPassword({ user, password });
  assert.deepEqual(login('ann', 'a:b'), { name: 'ann', roles: ['ops'] });
  assert.deepEqual(login('ann', 'next'), { name: 'ann', roles: ['admin'] });
  assert.deepEqual(login('bob', 'secret'), { name: 'bob', roles: [] });
  for (const [user, password] of [
    ['ann', 'secret'],
    ['bob', 'a:b'],
    ['ann', ''],
    ['', 'secret'],
    ['Ann', 'a:b'],
    ['ann:a', 'b '],
    ['ann:a', 'b'],
  ] as const) {
    assert.equal(login(user, password), undefined, `${user} ${password}`);
  }
  assert.equal(byHash, undefined);
  assert.equal(userTable([]).byPassword({ user: 'ann', password: 'a' }), undefined);
});

test('a hash is checked, and is no password itself', async () => {
  const { byPassword, byHash } = userTable([
    { user: 'ann', password: ONE, roles: ['ops'] },
    { user: 'ann', password: TWO, roles: ['admin'] },
    { user: 'bob', password: TWO, roles: [] },
    { user: 'eve', password: 'plain', roles: [] },
  ]);
  const login = async (user: string, password: string) =>
    byPassword({ user, password }) ?? (await byHash?.({ user, password }));
  assert.deepEqual(await login('ann', 'one'), { name: 'ann', roles: ['ops'] });
  assert.deepEqual(await login('ann', 'two'), { name: 'ann', roles: ['admin'] });
  assert.deepEqual(await login('bob', 'two'), { name: 'bob', roles: [] });
  assert.deepEqual(await login('eve', 'plain'), { name: 'eve', roles: [] });
  for (const [user, password] of [
    ['ann', ONE],
    ['bob', TWO],
    ['bob', 'one'],
    ['nobody', 'one'],
    ['', 'one'],
    ['eve', 'two'],
    ['ann', ''],
  ] as const) {
    assert.equal(await login(user, password), undefined, `${user} ${password}`);
  }
});

test('a name that does not exist costs as many checks as one that does', async () => {
  const { byHash } = userTable([
    { user: 'ann', password: ONE, roles: [] },
    { user: 'ann', password: TWO, roles: [] },
    { user: 'bob', password: TWO, roles: [] },
    { user: 'eve', password: 'plain', roles: [] },
  ]);
  let checks = 0;
  const init = (_id: number, type: string) => {
    if (/^(?:SCRYPT|ARGON2)REQUEST$/.test(type)) checks++;
  };
  const hook = createHook({ init }).enable();
  for (const user of ['ann', 'bob', 'eve', 'nobody', '']) {
    for (const password of ['one', 'wrong']) {
      checks = 0;
      await byHash?.({ user, password });
      assert.equal(checks, 2, `${user} ${password}`);
    }
  }
  hook.disable();
});

test('a user who could not log in, or whom everybody could be, is refused at the start', () => {
  for (const user of ['', 'a:b', 'a\nb']) {
    assert.throws(() => userTable([{ user, password: 'x', roles: [] }]), UserNameError);
  }
  assert.throws(() => userTable([{ user: 'a', password: '', roles: [] }]), EmptySecretError);
  assert.throws(() => userTable([{ user: 'a', password: '$scrypt$x', roles: [] }]), {
    code: 'PASSWORD_HASH',
  });
});
