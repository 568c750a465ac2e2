import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { openDatabase } from '../sql/open.ts';
import { readNewUser, UserRefusedError } from './user.ts';

const open = () => {
  const database = openDatabase('sqlite::memory:');
  return {
    users: database.users,
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
};

test('an empty store has no users', async () => {
  await using store = open();
  assert.deepEqual(await store.users.all(), []);
  assert.equal(await store.users.byId('1'), undefined);
});

test('a user that is added is found and listed, its id a text', async () => {
  await using store = open();
  const ada = await store.users.add({ name: 'Ada', email: 'ada@x' });
  const alan = await store.users.add({ name: 'Alan', email: 'alan@x' });
  assert.deepEqual(ada, { id: '1', name: 'Ada', email: 'ada@x' });
  assert.deepEqual(await store.users.byId('1'), ada);
  assert.deepEqual(await store.users.all(), [ada, alan]);
});

test('users that were created, changed and removed by the methods of REST are seen', async () => {
  await using store = open();
  const { users } = store;
  for (const name of ['a', 'b', 'c']) await users.create({ name, email: 'x@y' });
  await users.remove(2);
  await users.update(3, { name: 'C', email: 'c@y' });
  assert.deepEqual(await store.users.all(), [
    { id: '1', name: 'a', email: 'x@y' },
    { id: '3', name: 'C', email: 'c@y' },
  ]);
  assert.equal((await store.users.add({ name: 'd', email: 'd@y' })).id, '4', 'ids are never reused');
  assert.equal(await users.readJson(4), '{"id":4,"name":"d","email":"d@y"}');
});

test('an id is matched by string equality (CONTRACT.md#graphql-operations)', async () => {
  await using store = open();
  await store.users.add({ name: 'Ada', email: 'ada@x' });
  for (const id of ['01', '1.0', ' 1', '+1', '1e0', '', '0', '-1', 'x', '9'.repeat(30), '1 OR 1=1']) {
    assert.equal(await store.users.byId(id), undefined, id);
  }
});

test('text that the store cannot return unchanged is refused', async () => {
  await using store = open();
  const invalid = [
    { name: '', email: 'a@b' },
    { name: 'a', email: 'b' },
    { name: 'a\0', email: 'a@b' },
    { name: '\ud800', email: 'a@b' },
    { name: 'a'.repeat(501), email: 'a@b' },
  ];
  for (const user of invalid) {
    await assert.rejects(store.users.add(user), (error) => {
      assert.ok(error instanceof UserRefusedError);
      assert.equal(error.code, 'INVALID_USER');
      return true;
    });
  }
  assert.deepEqual(await store.users.all(), []);
});

test('every valid text round-trips', async () => {
  await using store = open();
  const special = [...'\u0001\u007f"\'\\/\u2028\ufeff😀é%_', '\ud7ff', '\uffff', '{"a":1}', '],['];
  const text = fc.oneof(fc.string({ unit: 'grapheme' }), fc.string({ unit: fc.constantFrom(...special) }));
  const user = fc.record({ name: text, email: text.map((rest) => `a@${rest}`) });
  await fc.assert(
    fc.asyncProperty(user, async (sent) => {
      fc.pre(readNewUser(sent) !== undefined);
      const added = await store.users.add(sent);
      assert.deepEqual(added, { id: added.id, ...sent });
      assert.deepEqual(await store.users.byId(added.id), added);
      const all = await store.users.all();
      assert.ok(Symbol.iterator in all);
      assert.deepEqual([...all].at(-1), added);
    }),
  );
});

test('a store that is closed fails every call and never looks empty', async () => {
  const store = open();
  await store[Symbol.asyncDispose]();
  const unavailable = { code: 'STORE_UNAVAILABLE' };
  await assert.rejects(async () => store.users.all(), unavailable);
  await assert.rejects(async () => store.users.byId('1'), unavailable);
  await assert.rejects(store.users.add({ name: 'a', email: 'a@b' }), unavailable);
});
