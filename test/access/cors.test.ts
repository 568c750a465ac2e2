import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keepConnection } from '../support/connections.ts';
import { startTestService } from '../support/service.ts';
import { bearer, moduleWith } from './support/tokens.ts';

const PAGE = 'https://app.example.com';
const ENV = {
  INTERFACES: 'rest,graphql',
  REST_CORS_ORIGINS: `${PAGE},https://other.example.com`,
  REST_CORS_CREDENTIALS: 'true',
  GRAPHQL_CORS_ORIGINS: '*',
  GRAPHQL_CORS_MAX_AGE: '60',
};

const preflight = (origin: string, method: string) => ({
  method: 'OPTIONS',
  headers: {
    origin,
    'access-control-request-method': method,
    'access-control-request-headers': 'authorization,content-type',
  },
});

for (const fastPath of ['true', 'false']) {
  test(`fast path ${fastPath}: pages of the origins that are named may read replies and refusals`, async () => {
    await using service = await startTestService({
      module: moduleWith(),
      env: { ...ENV, API_REQUIRED: 'write', HTTP_FAST_PATH: fastPath },
    });
    await service.listen();
    using rest = await keepConnection(service.urls.rest ?? '');
    for (const [path, method, status] of [
      ['/users/9', 'GET', 200],
      ['/users', 'GET', 200],
      ['/users', 'HEAD', 200],
      ['/users', 'POST', 401],
      ['/nothing', 'GET', 404],
      ['/delete/1', 'GET', 405],
    ] as const) {
      const reply = await rest.ask(path, { method, headers: { origin: PAGE } });
      assert.equal(reply.status, status, path);
      assert.equal(reply.headers['access-control-allow-origin'], PAGE, `${method} ${path}`);
      assert.equal(reply.headers['access-control-allow-credentials'], 'true');
      assert.match(reply.headers['access-control-expose-headers'] ?? '', /x-error-code/);
      assert.equal(reply.headers.vary, 'origin');
      const other = await rest.ask(path, { method, headers: { origin: 'https://evil.example.com' } });
      assert.equal(other.headers['access-control-allow-origin'], undefined);
      assert.equal(other.headers.vary, 'origin');
      const problem = await rest.ask(path, { method, headers: { accept: 'application/problem+json' } });
      assert.equal(
        problem.headers.vary,
        status >= 400 || path === '/users/9' ? 'origin, accept' : 'origin',
        path,
      );
    }
    using graphql = await keepConnection(service.urls.graphql ?? '');
    const query = await graphql.ask('/graphql?query=%7B__typename%7D', { headers: { origin: PAGE } });
    assert.equal(query.headers['access-control-allow-origin'], '*');
    assert.equal(query.headers.vary, 'accept');
    for (const [path, method, status] of [
      ['/nothing', 'GET', 404],
      ['/graphql', 'PUT', 405],
    ] as const) {
      const refused = await graphql.ask(path, { method, headers: { origin: PAGE } });
      assert.equal(refused.status, status);
      assert.equal(refused.headers['access-control-allow-origin'], '*', path);
    }
  });
}

test('preflights are answered without credentials, and OPTIONS is what it was', async () => {
  await using service = await startTestService({
    module: moduleWith(),
    env: { ...ENV, API_REQUIRED: 'all' },
  });
  await service.listen();
  const { rest, graphql } = service.urls;
  const allowed = await fetch(`${rest}/delete/1`, preflight(PAGE, 'DELETE'));
  assert.equal(allowed.status, 204);
  assert.equal(allowed.headers.get('access-control-allow-origin'), PAGE);
  assert.match(allowed.headers.get('access-control-allow-methods') ?? '', /DELETE/);
  assert.equal(allowed.headers.get('access-control-allow-headers'), 'authorization,content-type');
  assert.equal(allowed.headers.get('access-control-max-age'), '600');
  const refused = await fetch(`${rest}/delete/1`, preflight('https://evil.example.com', 'DELETE'));
  assert.equal(refused.headers.get('access-control-allow-origin'), null);
  const query = await fetch(`${graphql}/graphql`, preflight(PAGE, 'POST'));
  assert.equal(query.headers.get('access-control-allow-origin'), '*');
  assert.equal(query.headers.get('access-control-max-age'), '60');

  const options = await fetch(`${rest}/users`, { method: 'OPTIONS' });
  assert.deepEqual([options.status, options.headers.get('allow')], [200, 'GET, HEAD, POST, OPTIONS']);
  const own = await fetch(`${graphql}/graphql`, { method: 'OPTIONS', headers: { origin: PAGE } });
  assert.deepEqual([own.status, own.headers.get('allow')], [204, 'GET, HEAD, POST, OPTIONS']);
});

test('a browser may write from the origins that are named, and from no other site', async () => {
  await using service = await startTestService({ module: moduleWith(), env: ENV });
  await service.listen();
  const write = async (origin: string) => {
    const reply = await fetch(`${service.urls.rest}/delete/1`, {
      method: 'DELETE',
      headers: { 'sec-fetch-site': 'cross-site', origin, authorization: bearer('both') },
    });
    return reply.status;
  };
  assert.equal(await write(PAGE), 404);
  assert.equal(await write('https://evil.example.com'), 403);
});

test('without origins there is none of it', async () => {
  await using service = await startTestService({ env: { INTERFACES: 'rest,graphql' } });
  await service.listen();
  const reply = await fetch(`${service.urls.rest}/users`, { headers: { origin: PAGE } });
  assert.deepEqual(
    [reply.headers.get('vary'), reply.headers.get('access-control-allow-origin')],
    [null, null],
  );
  const answer = await fetch(`${service.urls.rest}/users`, preflight(PAGE, 'GET'));
  assert.deepEqual([answer.status, answer.headers.get('access-control-allow-origin')], [200, null]);
});
