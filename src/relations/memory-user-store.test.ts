import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { LocalUserFeed } from './events.ts';
import { type User, UserRefusedError } from './user.ts';
import { MemoryUserStore } from './user-stores.ts';

const store = (maxUsers = 100) => new MemoryUserStore(new LocalUserFeed(), maxUsers);

test('two users exist at the start, with the ids 1 and 2 (CONTRACT.md#graphql-user)', () => {
  const users = store();
  assert.deepEqual(
    users.all().map(({ id }) => id),
    ['1', '2'],
  );
  for (const user of users.all()) {
    assert.deepEqual(Object.keys(user), ['id', 'name', 'email']);
    assert.ok(user.name !== '' && user.email.includes('@'));
    assert.deepEqual(users.byId(user.id), user);
  }
});

test('the id of a new user is the number of users plus one, as a text', () => {
  const users = store();
  assert.deepEqual(users.add({ name: 'c', email: 'c@x' }), { id: '3', name: 'c', email: 'c@x' });
  assert.deepEqual(users.add({ name: 'c', email: 'c@x' }), { id: '4', name: 'c', email: 'c@x' });
  assert.equal(users.all().length, 4);
});

test('nothing but the name and the email is taken over', () => {
  const users = store();
  const added = users.add({ name: 'c', email: 'c@x', id: '1', role: 'admin' } as {
    name: string;
    email: string;
  });
  assert.deepEqual(added, { id: '3', name: 'c', email: 'c@x' });
});

test('an id is matched by string equality (CONTRACT.md#graphql-operations)', () => {
  const users = store();
  const others = [
    '01',
    '1.0',
    ' 1',
    '1 ',
    '+1',
    '1e0',
    '0x1',
    '',
    '0',
    '3',
    '１',
    '__proto__',
    'length',
    'constructor',
  ];
  for (const id of others) assert.equal(users.byId(id), undefined, id);
});

test('stores know nothing of each other', () => {
  const first = store();
  first.add({ name: 'c', email: 'c@x' });
  assert.equal(store().all().length, 2);
});

test('a full store refuses users and keeps its own', () => {
  const users = store(3);
  users.add({ name: 'c', email: 'c@x' });
  for (let i = 0; i < 2; i++) {
    assert.throws(
      () => users.add({ name: 'd', email: 'd@x' }),
      (error) => error instanceof UserRefusedError && error.code === 'COLLECTION_FULL',
    );
  }
  assert.equal(users.all().length, 3);
  assert.equal(users.byId('4'), undefined);
});

test('subscribers get each added user, and no other', async () => {
  const feed = new LocalUserFeed();
  const users = new MemoryUserStore(feed, 3);
  const events = feed.subscribe();
  const added = users.add({ name: 'c', email: 'c@x' });
  assert.throws(() => users.add({ name: 'd', email: 'd@x' }));
  assert.deepEqual(await events.next(), { value: added, done: false });
  await events.return?.();
  assert.deepEqual(await events.next(), { value: undefined, done: true });
});

test('any sequence of calls behaves like a list', () => {
  const newUser = fc.record({ name: fc.string(), email: fc.string() });
  const step = fc.oneof(
    newUser.map((user) => ({ add: user })),
    fc.oneof(fc.nat(30).map(String), fc.string()).map((id) => ({ find: id })),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const users = store();
      const model: User[] = [...users.all()];
      for (const each of steps) {
        if ('add' in each) {
          const added = users.add(each.add);
          model.push({ id: String(model.length + 1), ...each.add });
          assert.deepEqual(added, model.at(-1));
        } else {
          assert.deepEqual(
            users.byId(each.find),
            model.find(({ id }) => id === each.find),
          );
        }
        assert.deepEqual(users.all(), model);
      }
    }),
  );
});
