import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createFindOperation } from '@portico/graphql-plans';
import { buildSchema } from 'graphql';
import { defaultsOf } from '../../src/config/options/options.ts';
import { ask, type GraphqlDoor, openDoor } from './support/door.ts';

const LIMITS = defaultsOf('graphql');

describe('limits are settings', () => {
  let door: GraphqlDoor;
  before(async () => {
    const env = {
      GRAPHQL_MAX_TOKENS: '20',
      GRAPHQL_MAX_DEPTH: '1',
      GRAPHQL_MAX_ALIASES: '2',
      GRAPHQL_MAX_DIRECTIVES: '1',
      GRAPHQL_MAX_ROOT_FIELDS: '3',
      GRAPHQL_MAX_BODY_BYTES: '400',
      GRAPHQL_MAX_USERS: '3',
    };
    door = await openDoor({ env });
  });
  after(() => door[Symbol.asyncDispose]());

  const pairs: readonly (readonly [limit: string, at: string, past: string])[] = [
    ['tokens', `{ hello ${'# '.repeat(100)}\n }`, `{ user(id: [${'1 '.repeat(20)}]) { id } }`],
    ['maxDepth', '{ hello }', '{ users { id } }'],
    ['maxAliases', '{ a: hello b: hello }', '{ a: hello b: hello c: __typename }'],
    ['maxDirectives', '{ hello @skip(if: false) }', '{ hello @skip(if: false) @include(if: true) }'],
    ['maxRootFields', '{ hello hello hello }', '{ hello hello hello hello }'],
  ];
  for (const [limit, at, past] of pairs) {
    test(limit, async () => {
      assert.deepEqual((await ask(door.url, at)).body.errors, undefined);
      const { status, body } = await ask(door.url, past, { accept: 'application/graphql-response+json' });
      assert.equal(status, 400);
      assert.equal(body.errors?.length, 1);
      assert.match(body.errors[0]?.message ?? '', new RegExp(limit));
    });
  }

  test('the body in bytes', async () => {
    const of = (bytes: number) => {
      const empty = JSON.stringify({ query: '{ hello }', variables: { x: '' } }).length;
      return { query: '{ hello }', variables: { x: 'é'.repeat(10) + 'x'.repeat(bytes - empty - 20) } };
    };
    assert.equal((await ask(door.url, of(400))).status, 200);
    assert.equal((await ask(door.url, of(401))).status, 413);
  });

  test('the users in memory', async () => {
    const create = 'mutation { createUser(name: "n", email: "e") { __typename } }';
    await using roomy = await openDoor({ env: { GRAPHQL_MAX_USERS: '3' } });
    assert.equal((await ask(roomy.url, create)).body.errors, undefined);
    const { body } = await ask(roomy.url, create);
    assert.equal(body.data, null);
    assert.deepEqual(
      body.errors?.map(({ message, extensions }) => ({ message, extensions })),
      [
        {
          message: 'There are 3 users already, which is the maximum',
          extensions: { code: 'COLLECTION_FULL' },
        },
      ],
    );
    assert.equal((await ask(roomy.url, '{ users { id } }')).text.match(/"id"/g)?.length, 3);
  });

  test('introspection off', async () => {
    await using closed = await openDoor({ env: { GRAPHQL_INTROSPECTION: 'false' } });
    for (const query of ['{ __schema { queryType { name } } }', '{ __type(name: "User") { name } }']) {
      assert.match((await ask(closed.url, query)).body.errors?.[0]?.message ?? '', /introspection/i);
    }
    assert.deepEqual((await ask(closed.url, '{ __typename }')).body.data, { __typename: 'Query' });
  });

  test('suggestions off', async () => {
    const questions = [
      { query: '{ helo }' },
      { query: '{ users { nam } }' },
      { query: '{ user(idd: 1) { id } }' },
      { query: '{ ...F } fragment F on Usr { id }' },
      { query: 'query ($id: IDD!) { user(id: $id) { id } }' },
      { query: 'query ($id: ID!) { user(id: $idd) { id } }' },
      { query: 'query ($id: ID!) { user(id: $id) { id } }', variables: { id: {} } },
      { query: '{ hello @skp(if: true) }' },
      { query: '{ __type(name: "User") { knd } }' },
    ];
    await using open = await openDoor();
    await using closed = await openDoor({ env: { GRAPHQL_SUGGESTIONS: 'false' } });
    let suggested = 0;
    for (const question of questions) {
      if ((await ask(open.url, question)).text.includes('Did you mean')) suggested++;
      const { text } = await ask(closed.url, question);
      assert.match(text, /"errors"/);
      assert.doesNotMatch(text, /did you mean/i);
    }
    assert.ok(suggested >= 5, String(suggested));
  });

  test('suggestions off, in errors of variables too', async () => {
    const painted = buildSchema(`
      enum Color { RED GREEN }
      input Paint { color: Color, gloss: Int }
      type Query { paint(with: Paint): String }
      type Subscription { painted(with: Paint): String }
    `);
    const options = {
      schema: painted,
      limits: LIMITS,
      maxCacheBytes: 0,
      metrics: undefined,
    };
    for (const suggestions of [true, false]) {
      const find = createFindOperation({ ...options, introspection: true, suggestions });
      for (const paint of [{ color: 'REDD' }, { colour: 'RED' }]) {
        for (const field of ['query ($p: Paint) { paint', 'subscription ($p: Paint) { painted']) {
          const variables = { p: paint };
          const operation = find({ query: `${field}(with: $p) }`, operationName: undefined, variables });
          assert.ok('run' in operation);
          const result = field.startsWith('query')
            ? operation.run(variables, {})
            : operation.subscribe(variables, {});
          const text = JSON.stringify(await result);
          assert.match(text, /has invalid value/);
          assert.equal(/did you mean/i.test(text), suggestions, text);
        }
      }
    }
  });
});
