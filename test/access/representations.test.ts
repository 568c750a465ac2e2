import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openSocket } from '../graphql/support/socket-client.ts';
import { type KeptConnection, keepConnection } from '../support/connections.ts';
import { startTestService } from '../support/service.ts';
import { bearer, moduleWith, type TokenName, tokens } from './support/tokens.ts';

const ANN = '{"name":"Ann","email":"ann@example.com"}';
const SHOW = 'return=representation';

/** Every request of REST whose reply can have the user that it wrote. */
const WRITES = [
  { path: '/users', method: 'POST', type: 'application/json', body: ANN },
  { path: '/users', method: 'POST', type: 'application/json', body: ANN, prefer: 'handling=strict' },
  { path: '/users', method: 'POST', type: 'application/json', body: ANN, key: 'a-key' },
  { path: '/users', method: 'POST', type: 'application/json', body: ANN, key: 'a-key' },
  { path: '/update/1', method: 'PUT', type: 'application/json', body: ANN },
  { path: '/update/1', method: 'PUT', type: 'application/json', body: ANN, match: '*' },
  { path: '/update/1', method: 'PUT', type: 'application/merge-patch+json', body: '{}' },
  { path: '/update/1', method: 'PUT', type: 'application/merge-patch+json', body: '{"name":"Eve"}' },
] as const;

async function write(connection: KeptConnection, who: TokenName, asked: (typeof WRITES)[number]) {
  const { path, method, type, body, prefer, key, match } = { prefer: '', key: '', match: '', ...asked };
  const reply = await connection.ask(path, {
    method,
    headers: {
      authorization: bearer(who),
      'content-type': type,
      prefer: prefer === '' ? SHOW : `${prefer}, ${SHOW}`,
      ...(key === '' ? {} : { 'idempotency-key': key }),
      ...(match === '' ? {} : { 'if-match': match }),
    },
    body,
  });
  assert.match(String(reply.status), /^20[01]$/, `${who}: ${JSON.stringify(asked)}`);
  return { user: JSON.parse(reply.body).data, applied: String(reply.headers['preference-applied'] ?? '') };
}

for (const fastPath of ['true', 'false']) {
  test(`fast path ${fastPath}: a reply shows the user that was written only to callers who may read`, async () => {
    for (const required of ['write', 'all']) {
      await using service = await startTestService({
        module: moduleWith(),
        env: { INTERFACES: 'rest', API_REQUIRED: required, HTTP_FAST_PATH: fastPath },
      });
      await service.listen();
      using connection = await keepConnection(service.urls.rest ?? '');
      for (const asked of WRITES) {
        const what = `${required}: ${JSON.stringify(asked)}`;
        const shown = await write(connection, 'both', asked);
        assert.equal(shown.user.email, 'ann@example.com', what);
        assert.match(shown.applied, /return=representation/, what);
        // Where reads need no credentials everybody may read.
        const { user, applied } = await write(connection, 'writer', asked);
        assert.equal(user !== undefined, required === 'write', what);
        assert.equal(applied.includes(SHOW), required === 'write', what);
      }
    }
  });
}

const TYPE_DEFS = `
  extend type Mutation {
    touch(id: ID!): User
    touched(id: ID!): Boolean!
    either(id: ID!): Either
  }
  extend type User { friends: [User!]! }
  union Either = User | Other
  type Other { id: ID! }
`;
const RESOLVERS = `{
  Mutation: {
    touch: (_root, { id }, { users }) => users.byId(id),
    touched: () => true,
    either: (_root, { id }, { users }) => users.byId(id),
  },
  User: { friends: (_user, _args, { users }) => users.all() },
  Either: { __resolveType: () => 'User' },
}`;
const CREATE = 'createUser(name: "A", email: "a@b")';

/** Mutations of which a caller who may only write gets no result. */
const SHOWING = [
  'mutation { touch(id: "1") { email } }',
  'mutation { touch(id: "1") { __typename } }',
  'mutation { either(id: "1") { ... on User { email } } }',
  `mutation { ${CREATE} { id friends { email } } }`,
  `mutation { ${CREATE} { id } ${CREATE.replace('create', 'other: create')} { friends { email } } }`,
  `mutation { ...m } fragment m on Mutation { ${CREATE} { ...u } } fragment u on User { ... { name: friends { email } } }`,
  `mutation { touched(id: "1") ... { touch(id: "1") { email } } }`,
  'mutation($no: Boolean = false) { touch(id: "1") @include(if: $no) { email } }',
];
const HIDING = [
  `mutation { ${CREATE} { id } }`,
  `mutation { ${CREATE} { __typename id name mail: email } }`,
  `mutation { ...m } fragment m on Mutation { ${CREATE} { ...u } } fragment u on User { ... { name } }`,
  'mutation { touched(id: "1") }',
  'mutation { __typename }',
];

test('a mutation that can show what was stored needs the scope to read, over every transport', async () => {
  await using service = await startTestService({
    module: `export default { api: { tokens: ${JSON.stringify(tokens)} },
      graphql: { typeDefs: ${JSON.stringify(TYPE_DEFS)}, resolvers: ${RESOLVERS} } };`,
    env: { INTERFACES: 'graphql', API_REQUIRED: 'all', GRAPHQL_MAX_BATCH: '1' },
  });
  await service.listen();
  const url = `${service.urls.graphql}/graphql`;
  const post = async (who: TokenName, body: unknown, accept = 'application/json') => {
    const headers = { 'content-type': 'application/json', accept, authorization: bearer(who) };
    return (await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })).text();
  };
  const overSocket = async (who: TokenName, query: string) => {
    const client = await openSocket(url, { headers: { authorization: bearer(who) } });
    client.send({ type: 'connection_init' });
    assert.equal((await client.next()).type, 'connection_ack');
    client.subscribe('m', query);
    const answer = await client.next();
    client.socket.terminate();
    return JSON.stringify(answer);
  };
  for (const [who, queries, pattern] of [
    ['writer', SHOWING, /^(?!.*@).*LACKS_SCOPE/s],
    ['writer', HIDING, /^(?!.*LACKS_SCOPE).*"data"/s],
    ['both', SHOWING, /^(?!.*LACKS_SCOPE).*"data"/s],
    ['reader', HIDING, /LACKS_SCOPE/],
  ] as const) {
    for (const query of queries) {
      for (const answer of [
        await post(who, { query }),
        await post(who, [{ query }]),
        await post(who, { query }, 'text/event-stream'),
        await overSocket(who, query),
      ]) {
        assert.match(answer, pattern, `${who}: ${query}`);
      }
    }
  }
});

test('a resolver of its own makes createUser a mutation like any other', async () => {
  await using service = await startTestService({
    module: `export default { api: { tokens: ${JSON.stringify(tokens)} },
      graphql: { resolvers: { Mutation: { createUser: (_root, _args, { users }) => users.byId('1') } } } };`,
    env: { INTERFACES: 'graphql', API_REQUIRED: 'all' },
  });
  await service.listen();
  const ask = async (who: TokenName) => {
    const reply = await fetch(`${service.urls.graphql}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: bearer(who) },
      body: JSON.stringify({ query: `mutation { ${CREATE} { email } }` }),
    });
    return { status: reply.status, text: await reply.text() };
  };
  const refused = await ask('writer');
  assert.equal(refused.status, 403);
  assert.match(refused.text, /LACKS_SCOPE/);
  assert.match((await ask('both')).text, /"email":/);
});
