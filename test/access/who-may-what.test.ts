import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openSocket } from '../graphql/support/socket-client.ts';
import { type KeptConnection, keepConnection } from '../support/connections.ts';
import { startTestService } from '../support/service.ts';
import { bearer, moduleWith, type TokenName, tokens } from './support/tokens.ts';

const REQUIRED = ['none', 'write', 'all'] as const;
const CREDENTIALS = ['nothing', 'wrong', 'reader', 'writer', 'both', 'neither', 'expired'] as const;
type Credentials = (typeof CREDENTIALS)[number];
type Verdict = 'ok' | 401 | 403;

/** Who may read and who may write, where each kind of operation needs credentials or not. */
const MAY: Readonly<
  Record<(typeof REQUIRED)[number], Readonly<Record<Credentials, readonly [Verdict, Verdict]>>>
> = {
  none: {
    nothing: ['ok', 'ok'],
    wrong: ['ok', 'ok'],
    reader: ['ok', 'ok'],
    writer: ['ok', 'ok'],
    both: ['ok', 'ok'],
    neither: ['ok', 'ok'],
    expired: ['ok', 'ok'],
  },
  write: {
    nothing: ['ok', 401],
    wrong: [401, 401],
    reader: ['ok', 403],
    writer: ['ok', 'ok'],
    both: ['ok', 'ok'],
    neither: ['ok', 403],
    expired: [401, 401],
  },
  all: {
    nothing: [401, 401],
    wrong: [401, 401],
    reader: ['ok', 403],
    writer: [403, 'ok'],
    both: ['ok', 'ok'],
    neither: [403, 403],
    expired: [401, 401],
  },
};

/** The challenge of RFC 6750 3 that goes with a verdict. */
const CHALLENGES: Readonly<Record<string, RegExp | undefined>> = {
  'nothing 401': /^Bearer realm="portico"$/,
  'wrong 401': /^Bearer realm="portico", error="invalid_token"$/,
  'expired 401': /^Bearer realm="portico", error="invalid_token"$/,
  403: /^Bearer realm="portico", error="insufficient_scope", scope="(?:users|books):(?:read|write)"$/,
};

const JSON_TYPE = { 'content-type': 'application/json' };
const query = (text: string) => ({
  method: 'POST',
  headers: { ...JSON_TYPE, accept: 'application/graphql-response+json' },
  body: JSON.stringify({ query: text }),
});
const USER = '{"name":"Ann","email":"ann@example.com"}';
const BOOK = '{"title":"Emma"}';

/** A relation, for which each token has the scopes that it has for users. */
const MODULE = moduleWith({
  relations: { books: { columns: { title: { type: 'text', max: 20 } } } },
  api: {
    tokens: Object.fromEntries(
      Object.entries(tokens).map(([name, token]) => [
        name,
        { ...token, scopes: token.scopes.flatMap((scope) => [scope, scope.replace('users', 'books')]) },
      ]),
    ),
  },
});

interface Operation {
  readonly door: 'rest' | 'graphql';
  readonly path: string;
  readonly writes: boolean;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

const OPERATIONS: readonly Operation[] = [
  { door: 'rest', path: '/users', writes: false },
  { door: 'rest', path: '/users?limit=1', writes: false },
  { door: 'rest', path: '/users', writes: false, headers: { accept: 'text/csv' } },
  {
    door: 'rest',
    path: '/users',
    writes: false,
    method: 'HEAD',
    headers: { accept: 'application/x-ndjson' },
  },
  // Refused as a stream only behind the access policy.
  { door: 'rest', path: '/users?other=1', writes: false, headers: { accept: 'text/event-stream' } },
  { door: 'rest', path: '/users', writes: false, method: 'HEAD', headers: { accept: 'text/event-stream' } },
  { door: 'rest', path: '/users/', writes: false, method: 'HEAD' },
  { door: 'rest', path: '/users/1', writes: false },
  { door: 'rest', path: '/users/1', writes: false, method: 'HEAD' },
  { door: 'rest', path: '/users', writes: true, method: 'POST', headers: JSON_TYPE, body: USER },
  {
    door: 'rest',
    path: '/users',
    writes: true,
    method: 'POST',
    headers: { 'content-type': 'application/x-ndjson' },
    body: USER,
  },
  {
    door: 'rest',
    path: '/users/',
    writes: true,
    method: 'POST',
    headers: { ...JSON_TYPE, prefer: 'transaction=all' },
    body: `[${USER}]`,
  },
  { door: 'rest', path: '/update/1', writes: true, method: 'PUT', headers: JSON_TYPE, body: USER },
  { door: 'rest', path: '/delete/9', writes: true, method: 'DELETE' },
  ...(
    [
      ['/books'],
      ['/books/', 'HEAD'],
      ['/books', 'GET', { accept: 'text/csv' }],
      ['/books?other=1', 'GET', { accept: 'text/event-stream' }],
      ['/books/9'],
      ['/books/9', 'HEAD'],
      ['/_changes?relation=books&other=1'],
      ['/_changes'],
    ] as const
  ).map(([path, method = 'GET', headers = {}]): Operation => {
    return { door: 'rest', path, writes: false, method, headers };
  }),
  ...(
    [
      ['/books', 'POST', BOOK],
      ['/books?on=id', 'POST', BOOK],
      ['/books', 'POST', `[${BOOK}]`],
      ['/books', 'POST', BOOK, { 'content-type': 'application/x-ndjson' }],
      ['/books', 'POST', `[${BOOK}]`, { ...JSON_TYPE, prefer: 'transaction=all' }],
      ['/books/9', 'PATCH', BOOK],
      ['/books/9', 'PUT', BOOK],
      ['/books/9', 'DELETE'],
      ['/_batch', 'POST', `{"writes":[{"method":"POST","path":"/books","body":${BOOK}}]}`],
    ] as const
  ).map(([path, method, body, headers = JSON_TYPE]): Operation => {
    return { door: 'rest', path, writes: true, method, headers, ...(body !== undefined && { body }) };
  }),
  { door: 'graphql', path: '/graphql', writes: false, ...query('{ users { id } }') },
  { door: 'graphql', path: '/graphql?query=%7Busers%7Bid%7D%7D', writes: false },
  {
    door: 'graphql',
    path: '/graphql',
    writes: true,
    ...query('mutation { createUser(name: "A", email: "a@b") { id } }'),
  },
];

async function judge(
  connection: KeptConnection,
  { path, method = 'GET', headers, body }: Operation,
  credentials: Credentials,
) {
  const reply = await connection.ask(path, {
    method,
    headers: { ...headers, ...authorization(credentials) },
    ...(body === undefined ? {} : { body }),
  });
  const verdict = reply.status === 401 || reply.status === 403 ? reply.status : 'ok';
  return { verdict, reply };
}

function authorization(credentials: Credentials): Readonly<Record<string, string>> {
  if (credentials === 'nothing') return {};
  return {
    authorization: credentials === 'wrong' ? 'Bearer no-such-token' : bearer(credentials as TokenName),
  };
}

for (const required of REQUIRED) {
  for (const fastPath of ['true', 'false']) {
    test(`required ${required}, fast path ${fastPath}: who may read and who may write`, async () => {
      await using service = await startTestService({
        module: MODULE,
        env: {
          INTERFACES: 'rest,graphql',
          API_REQUIRED: required,
          API_MAX_FAILURES: '0',
          HTTP_FAST_PATH: fastPath,
        },
      });
      await service.listen();
      for (const operation of OPERATIONS) {
        using connection = await keepConnection(service.urls[operation.door] ?? '');
        for (const credentials of CREDENTIALS) {
          const what = `${credentials}: ${operation.method ?? 'GET'} ${operation.path} ${operation.body ?? ''}`;
          const { verdict, reply } = await judge(connection, operation, credentials);
          assert.equal(verdict, MAY[required][credentials][operation.writes ? 1 : 0], what);
          const challenge = CHALLENGES[`${credentials} ${verdict}`] ?? CHALLENGES[verdict];
          assert.match(reply.headers['www-authenticate'] ?? '', challenge ?? /^$/, what);
          if (verdict === 401) assert.equal(reply.headers['x-error-code'], 'UNAUTHORIZED');
          if (verdict === 403) assert.equal(reply.headers['x-error-code'], 'LACKS_SCOPE');
        }
      }
    });
  }
}

test('a WebSocket has the credentials of its payload, or of the request that opened it', async () => {
  await using service = await startTestService({
    module: moduleWith(),
    env: { INTERFACES: 'graphql', API_REQUIRED: 'all', API_MAX_FAILURES: '0' },
  });
  await service.listen();
  const url = `${service.urls.graphql}/graphql`;
  for (const byPayload of [true, false]) {
    for (const name of ['reader', 'writer'] as const) {
      const client = await openSocket(url, byPayload ? {} : { headers: { authorization: bearer(name) } });
      client.send({
        type: 'connection_init',
        payload: byPayload ? { Authorization: bearer(name) } : undefined,
      });
      assert.equal((await client.next()).type, 'connection_ack');
      client.subscribe('read', '{ users { id } }');
      const read = await client.next();
      client.socket.terminate();
      if (name === 'reader') assert.equal(read.type, 'next');
      else assert.equal(read.payload[0].extensions.code, 'LACKS_SCOPE');
    }
  }
  const both = { authorization: bearer('reader'), Authorization: bearer('reader') };
  for (const payload of [undefined, {}, { authorization: 'Bearer wrong' }, { authorization: 7 }, both]) {
    const client = await openSocket(url);
    client.send({ type: 'connection_init', payload });
    assert.equal((await client.closed).code, 4403, JSON.stringify(payload));
  }
});

test('each operation of a batch is judged for itself', async () => {
  await using service = await startTestService({
    module: moduleWith(),
    env: { INTERFACES: 'graphql', API_REQUIRED: 'all', GRAPHQL_MAX_BATCH: '3' },
  });
  await service.listen();
  const reply = await fetch(`${service.urls.graphql}/graphql`, {
    method: 'POST',
    headers: { ...JSON_TYPE, authorization: bearer('reader') },
    body: JSON.stringify([
      { query: '{ users { id } }' },
      { query: 'mutation { createUser(name: "A", email: "a@b") { id } }' },
    ]),
  });
  const [read, written] = (await reply.json()) as { data?: unknown; errors?: { extensions: unknown }[] }[];
  assert.ok(read?.data !== undefined && read.errors === undefined);
  assert.deepEqual(written?.errors?.[0]?.extensions, { code: 'LACKS_SCOPE' });
});

test('what shows nothing of the service stays open: the page of queries, OPTIONS, unknown paths', async () => {
  await using service = await startTestService({
    module: moduleWith(),
    env: { INTERFACES: 'rest,graphql', API_REQUIRED: 'all' },
  });
  await service.listen();
  const { rest, graphql } = service.urls;
  const page = await fetch(`${graphql}/graphql`, { headers: { accept: 'text/html' } });
  assert.equal(page.status, 200);
  assert.equal((await fetch(`${graphql}/graphql`, { method: 'OPTIONS' })).status, 204);
  assert.equal((await fetch(`${rest}/users`, { method: 'OPTIONS' })).status, 200);
  assert.equal((await fetch(`${rest}/nothing`)).status, 404);
});
