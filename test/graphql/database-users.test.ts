import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ask, type GraphqlDoor, openDoor } from './support/door.ts';

const withDatabase = () => openDoor({ env: { GRAPHQL_USERS: 'database', INTERFACES: 'graphql,rest' } });

async function rest(door: GraphqlDoor, method: string, path: string, user?: object): Promise<unknown> {
  const body = user === undefined ? {} : { body: JSON.stringify(user) };
  const response = await fetch(`${door.service.urls.rest}${path}`, { method, ...body });
  return ((await response.json()) as { readonly data?: unknown }).data;
}

const users = async (door: GraphqlDoor) =>
  (await ask(door.url, '{ users { id name email } }')).body.data?.users;
const user = async (door: GraphqlDoor, id: unknown) => {
  const query = 'query ($id: ID!) { user(id: $id) { id name email } }';
  return (await ask(door.url, { query, variables: { id } })).body.data?.user;
};
const create = (door: GraphqlDoor, name: string, email: string) => {
  const query = 'mutation ($n: String!, $e: String!) { createUser(name: $n, email: $e) { id name email } }';
  return ask(door.url, { query, variables: { n: name, e: email } });
};

describe('GraphQL with the users of the database', () => {
  test('serves those that REST creates, changes and removes', async () => {
    await using door = await withDatabase();
    assert.deepEqual(await users(door), []);
    const ada = { name: 'Ada "é𝒳"\n', email: 'ada@example.org' };
    await rest(door, 'POST', '/users', ada);
    await rest(door, 'POST', '/users', { name: 'Alan', email: 'alan@example.org' });
    assert.deepEqual(await user(door, '1'), { id: '1', ...ada });
    await rest(door, 'PUT', '/update/1', { name: 'Ada L.', email: 'ada@example.org' });
    await rest(door, 'DELETE', '/delete/2');
    assert.deepEqual(await users(door), [{ id: '1', name: 'Ada L.', email: 'ada@example.org' }]);
    assert.equal(await user(door, '2'), null);
  });

  test('creates those that REST serves, with ids that are never used again', async () => {
    await using door = await withDatabase();
    const made = { name: 'Grace', email: 'grace@example.org' };
    assert.deepEqual((await create(door, made.name, made.email)).body.data, {
      createUser: { id: '1', ...made },
    });
    assert.deepEqual(await rest(door, 'GET', '/users/1'), { id: 1, ...made });
    await rest(door, 'DELETE', '/delete/1');
    assert.deepEqual((await create(door, made.name, made.email)).body.data, {
      createUser: { id: '2', ...made },
    });
    assert.deepEqual(await rest(door, 'GET', '/users'), [{ id: 2, ...made }]);
  });

  test('creates several in their order, in one mutation', async () => {
    await using door = await withDatabase();
    const names = ['a', 'b', 'c', 'd'];
    const steps = names
      .map((name) => `${name}: createUser(name: "${name}", email: "${name}@x") { id }`)
      .join(' ');
    const { body } = await ask(door.url, `mutation { ${steps} }`);
    assert.deepEqual(body.data, { a: { id: '1' }, b: { id: '2' }, c: { id: '3' }, d: { id: '4' } });
  });

  test('finds by an id as text, or as the whole number that means it, and nothing else', async () => {
    await using door = await withDatabase();
    await create(door, 'Grace', 'grace@example.org');
    for (const id of ['1', 1])
      assert.deepEqual(await user(door, id), { id: '1', name: 'Grace', email: 'grace@example.org' });
    for (const id of ['01', 'abc', '0', '-1', '1.0', ' 1', '1e0', '9007199254740993', '', '2', 0]) {
      assert.equal(await user(door, id), null, String(id));
    }
  });

  test('tells why it does not take a user', async () => {
    await using door = await withDatabase();
    const wrong = [
      ['', 'a@b', '"name" is empty'],
      ['  ', 'a@b', '"name" is blank'],
      ['a', '', '"email" is empty'],
      ['a', 'no address', '"email" needs an @ between other characters'],
      ['a', '@b', '"email" needs an @ between other characters'],
      ['x'.repeat(501), 'a@b', '"name" is longer than 500 characters'],
      ['a', `a@${'b'.repeat(319)}`, '"email" is longer than 320 characters'],
      ['a\0', 'a@b', '"name" has a character that cannot be stored'],
      ['\ud800', 'a@b', '"name" has a character that cannot be stored'],
    ] as const;
    for (const [name, email, why] of wrong) {
      const { status, body } = await create(door, name, email);
      assert.equal(status, 200);
      assert.equal(body.data, null);
      assert.deepEqual(
        body.errors?.map(({ message, path, extensions }) => ({ message, path, extensions })),
        [
          {
            message: `The user is refused: ${why}`,
            path: ['createUser'],
            extensions: { code: 'INVALID_USER' },
          },
        ],
      );
    }
    assert.deepEqual(await users(door), []);
    assert.deepEqual(
      door.service.log.entries.filter(({ level }) => level === 'error'),
      [],
    );
  });
});

test('users in memory have any text (CONTRACT.md#graphql-user and #graphql-operations) that is not too long', async () => {
  await using door = await openDoor({});
  const taken = [
    ['', ''],
    ['  ', 'no address'],
    ['a\0', '@'],
    ['\ud800', 'e'],
    ['x'.repeat(500), 'e'.repeat(320)],
  ] as const;
  for (const [index, [name, email]] of taken.entries()) {
    const createUser = { id: String(index + 3), name, email };
    assert.deepEqual((await create(door, name, email)).body, { data: { createUser } });
    assert.deepEqual(await user(door, createUser.id), createUser);
  }
  for (const [name, email, why] of [
    ['x'.repeat(501), 'a@b', '"name" is longer than 500 characters'],
    ['a', 'x'.repeat(321), '"email" is longer than 320 characters'],
  ] as const) {
    const { status, body } = await create(door, name, email);
    assert.deepEqual([status, body.data], [200, null]);
    assert.equal(body.errors?.[0]?.message, `The user is refused: ${why}`);
    assert.deepEqual(body.errors?.[0]?.extensions, { code: 'INVALID_USER' });
  }
  assert.equal(((await users(door)) as readonly unknown[]).length, 7);
});

test('without the setting GraphQL has users of its own', async () => {
  await using door = await openDoor({ env: { INTERFACES: 'graphql,rest' } });
  await rest(door, 'POST', '/users', { name: 'Rest', email: 'rest@example.org' });
  const ids = (await users(door)) as readonly { readonly id: string }[];
  assert.deepEqual(
    ids.map(({ id }) => id),
    ['1', '2'],
  );
  await create(door, 'Grace', 'grace@example.org');
  assert.deepEqual(await user(door, '3'), { id: '3', name: 'Grace', email: 'grace@example.org' });
  assert.deepEqual(await rest(door, 'GET', '/users'), [{ id: 1, name: 'Rest', email: 'rest@example.org' }]);
});
