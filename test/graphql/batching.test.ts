import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import fastify from 'fastify';
import { buildSchema } from 'graphql';
import { graphql } from '../../src/graphql/graphql.ts';
import { ask, assertRefused, type GraphqlDoor, openDoor, read, sendAs } from './support/door.ts';

const CREATE = 'mutation { createUser(name: "Ada", email: "ada@example.org") { name } }';
const HELLO = { data: { hello: 'Hello from Portico!' } };
const hello = { query: '{ hello }' };

test('off, which is the default, a batch is refused and none of it runs', async () => {
  await using door = await openDoor();
  const off = { code: 'BATCH_REFUSED', message: /^Batching is off/, legacy: 400 } as const;
  await assertRefused(door.url, { body: [{ query: CREATE }] }, off);
  await assertRefused(door.url, { body: [] }, off);
  assert.deepEqual((await ask(door.url, '{ users { id } }')).body.data, {
    users: [{ id: '1' }, { id: '2' }],
  });
});

describe('on', () => {
  let door: GraphqlDoor;
  before(async () => {
    door = await openDoor({ env: { GRAPHQL_MAX_BATCH: '3' } });
  });
  after(() => door[Symbol.asyncDispose]());

  for (const accept of ['application/json', 'application/graphql-response+json']) {
    test(`each operation has its result in its place, and the reply is a 200 of ${accept}`, async () => {
      const body = [
        { query: 'query($id: ID!) { user(id: $id) { id } }', variables: { id: '2' } },
        { query: '{ nothing }' },
        { query: 'query A { a: hello } query B { b: hello }', operationName: 'B' },
      ];
      const { status, type, text } = await sendAs(door.url, accept, { body });
      assert.deepEqual([status, type], [200, `${accept}; charset=utf-8`]);
      const [user, wrong, named, ...others] = JSON.parse(text);
      assert.deepEqual(
        [user, named, others],
        [{ data: { user: { id: '2' } } }, { data: { b: HELLO.data.hello } }, []],
      );
      assert.match(wrong.errors[0].message, /Cannot query field "nothing"/);
      assert.ok(!('data' in wrong) && !('headers' in wrong));
    });
  }

  test('mutations run, and what one entry lacks is its own result', async () => {
    const hash = createHash('sha256').update('{ hello }').digest('hex');
    const extensions = { persistedQuery: { version: 1, sha256Hash: hash } };
    const body = [
      { query: CREATE },
      { invalid: 'request' },
      { query: 'subscription { userCreated { id } }' },
    ];
    const answer = await sendAs(door.url, 'application/json', { body });
    const [created, invalid, subscription] = JSON.parse(answer.text);
    assert.deepEqual(created, { data: { createUser: { name: 'Ada' } } });
    assert.equal(invalid.errors[0].extensions.code, 'MALFORMED_REQUEST');
    assert.equal(subscription.errors[0].extensions.code, 'NEEDS_EVENT_STREAM');
    const persisted = [{ extensions }, { ...hello, extensions }, { extensions }];
    const { text } = await sendAs(door.url, 'application/json', { body: persisted });
    const [unknown, ...known] = JSON.parse(text);
    assert.equal(unknown.errors[0].message, 'PersistedQueryNotFound');
    assert.deepEqual(known, [HELLO, HELLO]);
  });

  test('what is no batch is refused as a whole, and none of it runs', async () => {
    const before = await ask(door.url, '{ users { id } }');
    const create = { query: CREATE };
    const large = {
      code: 'BATCH_REFUSED',
      message: /has 4 operations; at most 3 are allowed/,
      legacy: 400,
    } as const;
    await assertRefused(door.url, { body: [create, create, create, create] }, large);
    for (const entry of [null, 'query', 7, [create]]) {
      const malformed = { code: 'MALFORMED_REQUEST', message: /must be a JSON object/, legacy: 400 } as const;
      await assertRefused(door.url, { body: [create, entry] }, malformed);
    }
    const empty = { code: 'MALFORMED_REQUEST', message: /batch is empty/, legacy: 400 } as const;
    await assertRefused(door.url, { body: [] }, empty);
    assert.equal((await ask(door.url, '{ users { id } }')).text, before.text);
  });

  test('an event stream has no batch, and a client that takes both gets the results', async () => {
    const send = (accept: string) => sendAs(door.url, accept, { body: [hello, hello] });
    const both = await send('application/json, text/event-stream');
    assert.deepEqual([both.status, JSON.parse(both.text)], [200, [HELLO, HELLO]]);
    const { status, headers } = await send('text/event-stream');
    assert.deepEqual([status, headers.get('x-error-code')], [406, 'NOT_ACCEPTABLE']);
  });
});

test('operations run side by side; results are in order however late they come, and each has a context', async () => {
  const schema = buildSchema('type Query { slow: Int, fast: Int, long: [Int!]! }');
  const { slow, fast, long } = schema.getQueryType()?.getFields() ?? {};
  assert.ok(slow && fast && long);
  const begun = Promise.withResolvers<void>();
  let contexts = 0;
  slow.resolve = async (_root, _args, context: number) => {
    await begun.promise;
    return context;
  };
  fast.resolve = async (_root, _args, context: number) => {
    begun.resolve();
    return context;
  };
  // A result that long is text in UTF-8 already.
  long.resolve = () => Array.from({ length: 100_000 }, (_, i) => i);
  const app = fastify();
  await app.register(graphql, { schema, maxBatch: 3, context: () => contexts++ });
  const origin = await app.listen({ host: '127.0.0.1', port: 0 });
  try {
    const { text } = await read(
      await fetch(`${origin}/graphql`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify([{ query: '{ slow }' }, { query: '{ long }' }, { query: '{ fast }' }]),
      }),
    );
    const [first, second, third] = JSON.parse(text);
    assert.deepEqual([first, third], [{ data: { slow: 0 } }, { data: { fast: 2 } }]);
    assert.equal(second.data.long.length, 100_000);
  } finally {
    await app.close();
  }
});
