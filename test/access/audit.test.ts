import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openDatabase } from '../../src/sql/open.ts';
import { openSocket } from '../graphql/support/socket-client.ts';
import { keepConnection } from '../support/connections.ts';
import { runCommand } from '../support/run-command.ts';
import { startTestService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { bearer, moduleWith } from './support/tokens.ts';

const CREATE = 'mutation { createUser(name: "A", email: "a@b") { id } }';
const JSON_TYPE = { 'content-type': 'application/json' };

/** All audit events of a database: who, what, where and why. */
async function eventsIn(url: string) {
  await using database = await openDatabase(url);
  const events = await database.audit.find({ limit: 100 });
  return events.map(({ principal, type, data }) =>
    [principal, type, data.door ?? data.by, data.status, data.code ?? data.token]
      .filter((each) => each !== undefined)
      .join(' '),
  );
}

for (const fastPath of ['true', 'false']) {
  test(`fast path ${fastPath}: each refusal is recorded once, by name where that is known`, async () => {
    await using service = await startTestService({
      module: moduleWith(),
      env: {
        INTERFACES: 'rest,graphql',
        AUDIT_RETENTION: '1',
        API_REQUIRED: 'all',
        API_MAX_FAILURES: '1',
        API_RATE: '1/h',
        API_BURST: '5',
        GRAPHQL_MAX_BATCH: '3',
        HTTP_FAST_PATH: fastPath,
      },
      database: 'file',
    });
    await service.listen();
    using rest = await keepConnection(service.urls.rest ?? '');
    const status = async (path: string, authorization?: string, method = 'GET') => {
      const headers = authorization === undefined ? {} : { authorization };
      return (await rest.ask(path, { method, headers })).status;
    };
    assert.equal(await status('/users/1'), 401);
    assert.equal(await status('/users/1', 'Bearer wrong'), 401);
    assert.equal(await status('/users/1', 'Bearer wrong'), 429);
    assert.equal(await status('/users', bearer('writer')), 403);
    assert.equal(await status('/users', bearer('writer'), 'HEAD'), 403);
    for (const _ of Array(5)) assert.equal(await status('/users/1', bearer('both')), 200);
    assert.equal(await status('/users/1', bearer('both')), 429);

    const url = `${service.urls.graphql}/graphql`;
    const batch = await fetch(url, {
      method: 'POST',
      headers: { ...JSON_TYPE, authorization: bearer('reader') },
      body: JSON.stringify([{ query: '{ users { id } }' }, { query: CREATE }]),
    });
    assert.equal(batch.status, 200);
    const client = await openSocket(url);
    client.send({ type: 'connection_init', payload: { Authorization: bearer('reader') } });
    assert.equal((await client.next()).type, 'connection_ack');
    client.subscribe('write', CREATE);
    assert.equal((await client.next()).type, 'error');
    client.socket.terminate();
    const stranger = await openSocket(url);
    stranger.send({ type: 'connection_init' });
    assert.equal((await stranger.closed).code, 4403);

    await service.current.stop();
    assert.deepEqual(await eventsIn(service.databaseUrl), [
      'anonymous AUTHENTICATION_FAILURE rest 401 UNAUTHORIZED',
      'anonymous AUTHENTICATION_FAILURE rest 401 UNAUTHORIZED',
      'anonymous LIMIT_REACHED rest 429 TOO_MANY_ATTEMPTS',
      'writer AUTHORIZATION_FAILURE rest 403 LACKS_SCOPE',
      'writer AUTHORIZATION_FAILURE rest 403 LACKS_SCOPE',
      'both LIMIT_REACHED rest 429 RATE_LIMITED',
      'reader AUTHORIZATION_FAILURE graphql 403 LACKS_SCOPE',
      'reader AUTHORIZATION_FAILURE graphql 403 LACKS_SCOPE',
      'anonymous AUTHENTICATION_FAILURE graphql 401 UNAUTHORIZED',
    ]);
  });
}

test('what rules refuse within results of GraphQL is recorded once for each result', async () => {
  const relations = {
    notes: {
      columns: {
        text: { type: 'text', max: 9 },
        cost: { type: 'integer', nullable: true, read: { scope: 'x' } },
      },
      rules: { read: 'anyone', create: { where: { text: { caller: '/sub' } } } },
    },
  };
  await using service = await startTestService({
    module: moduleWith({ relations }),
    env: { INTERFACES: 'graphql', AUDIT_RETENTION: '1', API_SCOPES: 'x' },
    database: 'file',
  });
  await service.listen();
  const url = `${service.urls.graphql}/graphql`;
  const headers = { ...JSON_TYPE, authorization: bearer('reader') };
  for (const query of [
    '{ a: notes { cost } b: notes { cost } }',
    'mutation { createNote(data: { text: "other" }) { text } }',
    'mutation { createNote(data: { text: "reader" }) { text } }',
  ]) {
    const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ query }) });
    assert.equal(response.status, 200, await response.text());
  }
  await service.current.stop();
  const refusal = 'reader AUTHORIZATION_FAILURE graphql 403 NOT_ALLOWED';
  assert.deepEqual(await eventsIn(service.databaseUrl), [refusal, refusal]);
});

test('who makes and revokes tokens of the database is recorded, and no token', async () => {
  await using folder = await temporaryFolder();
  const url = `sqlite:${folder.path}/portico.db`;
  await (await openDatabase(url))[Symbol.asyncDispose]();
  const env = { DATABASE_URL: url, AUDIT_RETENTION: '1' };
  const run = (...args: string[]) => runCommand(['tokens', ...args], { cwd: folder.path, env });
  const made = await run('create', 'ci', '--scopes', 'users:read', '--expires', '90d');
  assert.equal(made.code, 0, made.stderr);
  assert.equal((await run('create', 'ci', '--scopes', 'users:read')).code, 1);
  assert.equal((await run('revoke', 'ci', 'other')).code, 1);
  const events = await eventsIn(url);
  assert.deepEqual(
    events.map((event) => event.replace(/^\S+ /, '')),
    ['TOKEN_CREATED command line ci', 'TOKEN_REVOKED command line ci'],
  );
  await using database = await openDatabase(url);
  const [created] = await database.audit.find({ type: 'TOKEN_CREATED', limit: 1 });
  assert.equal(created?.data.scopes, 'users:read');
  assert.equal(JSON.stringify(created).includes(made.stdout.trim()), false);
});
