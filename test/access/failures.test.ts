import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { keepConnection } from '../support/connections.ts';
import { startTestService } from '../support/service.ts';
import { waitFor } from '../support/wait-for.ts';
import { bearer, moduleWith } from './support/tokens.ts';

const REST = { INTERFACES: 'rest', API_REQUIRED: 'all' };

for (const fastPath of ['true', 'false']) {
  test(`fast path ${fastPath}: too many wrong tokens are 429 for their address, and known tokens still come in`, async () => {
    await using service = await startTestService({
      module: moduleWith(),
      env: { ...REST, HTTP_FAST_PATH: fastPath, API_MAX_FAILURES: '3', TRUST_PROXY: 'loopback' },
    });
    await service.listen();
    using connection = await keepConnection(service.urls.rest ?? '');
    const ask = async (authorization: string, client: string) => {
      const headers = { authorization, 'x-forwarded-for': client };
      return connection.ask('/users/1', { headers });
    };
    for (const guess of ['a', 'b', '?']) {
      assert.equal((await ask(`Bearer ${guess}`, '203.0.113.1')).status, 401);
    }
    // Neither missing nor expired credentials are guesses.
    const limited = await ask('Bearer d', '203.0.113.1');
    assert.equal(limited.status, 429);
    assert.equal(limited.headers['x-error-code'], 'TOO_MANY_ATTEMPTS');
    assert.match(limited.headers['retry-after'] ?? '', /^\d+$/);
    assert.equal((await ask(bearer('reader'), '203.0.113.1')).status, 200);
    // What a client writes itself before the proxy's entry changes nothing, another client is another one.
    assert.equal((await ask('Bearer e', '198.51.100.1, 203.0.113.1')).status, 429);
    for (let i = 0; i < 4; i++) assert.equal((await ask(bearer('expired'), '203.0.113.2')).status, 401);
    assert.equal((await ask('Bearer e', '203.0.113.2')).status, 401);
    const log = await waitFor('the warning', () =>
      service.log.entries.find(({ msg }) => msg === 'too many wrong credentials for the API'),
    );
    assert.equal(log.address, '203.0.113.1');
  });
}

test('a request without credentials is refused before its body is read', async () => {
  await using service = await startTestService({ module: moduleWith(), env: REST });
  await service.listen();
  const { hostname, port } = new URL(service.urls.rest ?? '');
  const socket = connect({ host: hostname, port: Number(port) });
  socket.write(
    'POST /users HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 50000\r\n\r\n{',
  );
  const [reply] = (await once(socket, 'data')) as [Buffer];
  assert.match(String(reply), /^HTTP\/1\.1 401 /);
  socket.destroy();
});

test('a token in a file is replaced without a restart, and the old one is refused', async () => {
  await using service = await startTestService({
    module: `import { writeFileSync } from 'node:fs';
writeFileSync(new URL('./token', import.meta.url), 'first-token-0123456789\\n');
export default { api: { tokens: { ci: { secret: { file: 'token' }, scopes: ['users:read'] } } } };`,
    env: { ...REST, API_MAX_FAILURES: '0' },
  });
  await service.listen();
  const status = async (token: string) =>
    (await fetch(`${service.urls.rest}/users/1`, { headers: { authorization: `Bearer ${token}` } })).status;
  assert.equal(await status('first-token-0123456789'), 200);
  await writeFile(join(service.folder, 'token'), 'short');
  await waitFor('the refusal of a short secret', () =>
    service.log.entries.some(({ msg }) => msg === 'changed tokens of the API unusable, old ones kept'),
  );
  assert.equal(await status('first-token-0123456789'), 200);
  await writeFile(join(service.folder, 'token'), 'second-token-0123456789\n');
  await waitFor('the new token', async () => (await status('second-token-0123456789')) === 200);
  assert.equal(await status('first-token-0123456789'), 401);
  assert.doesNotMatch(JSON.stringify(service.log.entries), /second-token/);
});

test('the users of the management door come in by Basic where that is asked for', async () => {
  const users = [
    { user: 'ann', password: 'ann-password', roles: ['users:write'] },
    { user: 'bob', password: 'bob-password', roles: [] },
  ];
  await using service = await startTestService({
    module: moduleWith({ management: { users } }),
    env: { ...REST, API_BASIC: 'users:read' },
  });
  await service.listen();
  const ask = (method: string, user: string) =>
    fetch(`${service.urls.rest}/${method === 'DELETE' ? 'delete' : 'users'}/1`, {
      method,
      headers: { authorization: `Basic ${Buffer.from(`${user}:${user}-password`).toString('base64')}` },
    });
  assert.equal((await ask('GET', 'ann')).status, 200);
  assert.equal((await ask('DELETE', 'ann')).status, 404);
  assert.equal((await ask('GET', 'bob')).status, 200);
  assert.equal((await ask('DELETE', 'bob')).status, 403);
  const refused = await ask('GET', 'eve');
  assert.equal(refused.status, 401);
  assert.equal(
    refused.headers.get('www-authenticate'),
    'Bearer realm="portico", error="invalid_token", Basic realm="portico", charset="UTF-8"',
  );
});

test('resolvers get the caller, and a refusal has the format that its client asks for', async () => {
  await using service = await startTestService({
    module: moduleWith({}).replace(
      'export default {',
      `export default { graphql: {
        typeDefs: 'extend type Query { me: String }',
        resolvers: { Query: { me: (_parent, _args, { caller }) => caller?.name ?? null } },
      },`,
    ),
    env: { INTERFACES: 'rest,graphql', API_REQUIRED: 'write' },
  });
  await service.listen();
  const ask = async (headers: Readonly<Record<string, string>>, query = '{ me }') =>
    fetch(`${service.urls.graphql}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ query }),
    });
  assert.deepEqual(await (await ask({ authorization: bearer('reader') })).json(), { data: { me: 'reader' } });
  assert.deepEqual(await (await ask({})).json(), { data: { me: null } });
  const write = 'mutation { createUser(name: "A", email: "a@b") { id } }';
  const refused = await ask({}, write);
  assert.equal(refused.status, 401);
  assert.deepEqual(await refused.json(), {
    errors: [{ message: 'This needs credentials', extensions: { code: 'UNAUTHORIZED' } }],
  });
  const problem = await ask({ accept: 'application/problem+json, application/json' }, write);
  assert.equal(problem.headers.get('content-type'), 'application/problem+json');
  assert.equal(((await problem.json()) as { status: number }).status, 401);
  const rest = await fetch(`${service.urls.rest}/users`, { method: 'POST', body: '{}' });
  assert.deepEqual(await rest.json(), { status: 'error', message: 'Failed to create user' });
});
