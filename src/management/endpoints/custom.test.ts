import assert from 'node:assert/strict';
import { test } from 'node:test';
import Fastify, { type FastifyInstance, type InjectOptions } from 'fastify';
import { exposedEndpoints } from '../guard.ts';
import type { Access } from '../masking.ts';
import type { ManagementEndpoint } from '../operations.ts';
import { addRoutes, prepareScope } from '../operations.ts';
import { type CustomEndpoint, customEndpoint } from './custom.ts';

const V3 = 'application/vnd.spring-boot.actuator.v3+json';

interface Entry {
  readonly reqId?: string;
  readonly err?: { readonly code: string; readonly stack: string };
}

function exposed(app: FastifyInstance, endpoint: ManagementEndpoint, access: Access) {
  return exposedEndpoints(app, [endpoint], { include: ['*'], exclude: [], access: { default: access } });
}

/** An application with one endpoint; `log` holds the error entries that it writes. */
function open(
  endpoint: CustomEndpoint,
  { timeoutMs, access = 'unrestricted' }: { timeoutMs?: number; access?: Exclude<Access, 'none'> } = {},
) {
  const log: Entry[] = [];
  const stream = { write: (line: string) => void log.push(JSON.parse(line)) };
  const app = Fastify({ logger: { level: 'error', stream } });
  prepareScope(app);
  for (const { routes } of exposed(app, customEndpoint(endpoint, timeoutMs), access)) addRoutes(app, routes);
  return {
    log,
    ask: (options: InjectOptions | string) => app.inject(options),
    read: () => app.inject(`/${endpoint.id}`),
    [Symbol.asyncDispose]: () => app.close(),
  };
}

const post = (url: string, payload?: string, type = 'application/json'): InjectOptions =>
  payload === undefined
    ? { method: 'POST', url }
    : { method: 'POST', url, payload, headers: { 'content-type': type } };

test('a string is the reply, as it is', async () => {
  for (const text of ['hello', '', '{"a":1}', 'grüß\n']) {
    for (const answer of [() => text, async () => text]) {
      await using app = open({ id: 'mine', read: answer });
      const response = await app.ask({ url: '/mine', headers: { accept: 'application/json' } });
      assert.equal(response.statusCode, 200);
      assert.equal(response.headers['content-type'], 'text/plain; charset=utf-8');
      assert.equal(response.headers['cache-control'], 'no-store');
      assert.equal(response.headers['x-content-type-options'], 'nosniff');
      assert.equal(response.body, text);
    }
  }
});

test('another value is JSON, under the media type that is wanted', async () => {
  for (const value of [{ a: [1, null] }, [1], 42, true, false, 0]) {
    for (const answer of [() => value, async () => value]) {
      await using app = open({ id: 'mine', read: answer });
      const response = await app.read();
      assert.equal(response.statusCode, 200);
      assert.equal(response.headers['content-type'], V3);
      assert.equal(response.headers['cache-control'], 'no-store');
      assert.deepEqual(response.json(), value);
      const plain = await app.ask({ url: '/mine', headers: { accept: 'application/json' } });
      assert.equal(plain.headers['content-type'], 'application/json');
    }
  }
});

test('bytes are bytes', async () => {
  await using app = open({ id: 'mine', read: () => Uint8Array.of(0, 255) });
  const response = await app.read();
  assert.equal(response.headers['content-type'], 'application/octet-stream');
  assert.deepEqual([...response.rawPayload], [0, 255]);
});

test('nothing is 404 when it is read, and 204 when it is written or deleted', async () => {
  for (const nothing of [undefined, null]) {
    for (const answer of [() => nothing, async () => nothing]) {
      await using app = open({ id: 'mine', read: answer, write: answer, delete: answer });
      const read = await app.read();
      assert.equal(read.statusCode, 404);
      assert.deepEqual(read.json(), {
        status: 404,
        error: 'Not Found',
        message: 'There is no such endpoint',
      });
      for (const method of ['POST', 'DELETE'] as const) {
        const response = await app.ask({ method, url: '/mine' });
        assert.equal(response.statusCode, 204);
        assert.equal(response.body, '');
        assert.equal(response.headers['content-type'], undefined);
        assert.equal(response.headers['cache-control'], 'no-store');
      }
    }
  }
});

test('only what is given can be done, and Allow says what that is', async () => {
  const nothing = () => 'done';
  const methods = ['GET', 'HEAD', 'POST', 'DELETE', 'PUT', 'PATCH'] as const;
  for (const [endpoint, access, takes, allow] of [
    [{ read: nothing }, 'unrestricted', ['GET', 'HEAD'], 'GET, HEAD, OPTIONS'],
    [{ write: nothing }, 'unrestricted', ['POST'], 'POST, OPTIONS'],
    [{ delete: nothing }, 'unrestricted', ['DELETE'], 'DELETE, OPTIONS'],
    [
      { read: nothing, write: nothing, delete: nothing },
      'unrestricted',
      ['GET', 'HEAD', 'POST', 'DELETE'],
      'GET, HEAD, POST, DELETE, OPTIONS',
    ],
    [{ read: nothing, write: nothing, delete: nothing }, 'read-only', ['GET', 'HEAD'], 'GET, HEAD, OPTIONS'],
  ] as const) {
    await using app = open({ id: 'mine', path: 'name?', ...endpoint }, { access });
    for (const url of ['/mine', '/mine/x']) {
      for (const method of methods) {
        const response = await app.ask({ method, url });
        const taken = (takes as readonly string[]).includes(method);
        assert.equal(response.statusCode, taken ? 200 : 405, `${allow}: ${method} ${url}`);
        if (!taken) assert.equal(response.headers.allow, allow);
      }
      const options = await app.ask({ method: 'OPTIONS', url });
      assert.equal(options.statusCode, 200);
      assert.equal(options.headers.allow, allow);
    }
  }
});

test('an endpoint that reads nothing is gone when only reading is allowed', () => {
  const left = (endpoint: CustomEndpoint) => exposed(Fastify(), customEndpoint(endpoint), 'read-only').length;
  assert.equal(left({ id: 'mine', write: () => {} }), 0);
  assert.equal(left({ id: 'mine', read: () => '' }), 1);
});

test('a segment and query parameters are given under their names', async () => {
  const echo = (request: object) => request;
  await using app = open({
    id: 'mine',
    path: 'name?',
    query: ['limit', 'since?'],
    read: echo,
    write: echo,
    delete: echo,
  });
  const json = async (options: InjectOptions | string) => (await app.ask(options)).json();
  assert.deepEqual(await json('/mine?limit=3'), { path: {}, query: { limit: '3' } });
  assert.deepEqual(await json('/mine/a%2Fb%20c?limit=3&since=&other=1'), {
    path: { name: 'a/b c' },
    query: { limit: '3', since: '' },
  });
  assert.deepEqual(await json(post('/mine/x?limit=1', '{"a":[1]}')), {
    path: { name: 'x' },
    query: { limit: '1' },
    body: { a: [1] },
  });
  assert.deepEqual(await json({ method: 'DELETE', url: '/mine/x?limit=1' }), {
    path: { name: 'x' },
    query: { limit: '1' },
  });
  for (const url of ['/mine', '/mine/x', '/mine?since=1', '/mine?limit=1&limit=2']) {
    for (const method of ['GET', 'POST', 'DELETE'] as const) {
      const response = await app.ask({ method, url });
      assert.equal(response.statusCode, 400, `${method} ${url}`);
      assert.match(response.json().message, /^The parameter limit is (missing|given more than once)$/);
    }
  }
  for (const url of ['/mine/?limit=1', '/mine/x/?limit=1', '/mine/x/y?limit=1']) {
    assert.equal((await app.ask(url)).statusCode, 404, url);
  }
});

test('names from the prototype are no parameters', async () => {
  await using app = open({ id: 'mine', query: ['constructor', 'toString?'], read: ({ query }) => query });
  assert.equal((await app.ask('/mine')).statusCode, 400);
  assert.deepEqual((await app.ask('/mine?constructor=1')).json(), { constructor: '1' });
});

test('a segment that may not be left out', async () => {
  const endpoint: CustomEndpoint = { id: 'mine', path: 'name', read: ({ path }) => path.name };
  await using app = open(endpoint);
  assert.equal((await app.ask('/mine/x')).body, 'x');
  assert.equal((await app.ask('/mine')).statusCode, 404);
  assert.equal((await app.ask('/mine/')).statusCode, 404);
});

test('the paths are those with and without the segment', () => {
  const paths = (path: string | undefined) =>
    Object.keys(customEndpoint({ id: 'mine', path, read: () => '' }).routes(Fastify()));
  assert.deepEqual(paths(undefined), ['/mine']);
  assert.deepEqual(paths('name'), ['/mine/{name}']);
  assert.deepEqual(paths('name?'), ['/mine', '/mine/{name}']);
});

test('what is written is strict JSON of a bounded size, or nothing', async () => {
  const seen: unknown[] = [];
  await using app = open({ id: 'mine', write: ({ body }) => void seen.push(body) });
  for (const [payload, status, type] of [
    ['{"a":1}', 204, 'application/json'],
    ['{"a":2}', 204, V3],
    ['null', 204, 'application/json'],
    [undefined, 204, ''],
    ['', 204, 'application/json'],
    ['{"a":', 400, 'application/json'],
    ['{"__proto__":{}}', 400, 'application/json'],
    [`"${'x'.repeat(64 * 1024)}"`, 413, 'application/json'],
    ['{"a":1}', 415, 'text/plain'],
    ['a=1', 415, 'application/x-www-form-urlencoded'],
  ] as const) {
    const response = await app.ask(post('/mine', payload, type));
    assert.equal(response.statusCode, status, `${type} ${payload?.slice(0, 20)}`);
  }
  assert.deepEqual(seen, [{ a: 1 }, { a: 2 }, null, undefined, undefined]);
});

test('operations keep their this', async () => {
  class Page {
    readonly id = 'page';
    readonly text = 'mine';
    read() {
      return this.text;
    }
  }
  await using app = open(new Page());
  assert.equal((await app.read()).body, 'mine');
});

test('a failure is 500 without its message, and logged with the id of the request', async () => {
  const fail = () => {
    throw Object.assign(new Error('password is 1234'), { statusCode: 404 });
  };
  for (const failing of [fail, async () => fail()]) {
    for (const method of ['GET', 'POST', 'DELETE'] as const) {
      await using app = open({ id: 'broken', read: failing, write: failing, delete: failing });
      const response = await app.ask({ method, url: '/broken' });
      assert.equal(response.statusCode, 500);
      assert.deepEqual(response.json(), { status: 500, error: 'Internal Server Error' });
      assert.equal(app.log.length, 1);
      assert.equal(app.log[0]?.reqId, 'req-1');
      assert.equal(app.log[0]?.err?.code, 'CUSTOM_ENDPOINT');
      assert.match(app.log[0]?.err?.stack ?? '', /password is 1234/);
    }
  }
});

test('what cannot be written as JSON is 500', async () => {
  const circle: unknown[] = [];
  circle.push(circle);
  for (const value of [() => {}, Symbol('x'), 1n, circle]) {
    for (const answer of [() => value, async () => value]) {
      await using app = open({ id: 'wrong', read: answer });
      assert.equal((await app.read()).statusCode, 500);
      assert.equal(app.log[0]?.err?.code, 'CUSTOM_ENDPOINT');
    }
  }
});

test('an operation that hangs is cut with 503, and not called again until it has ended', async () => {
  const { promise: answer, resolve: end } = Promise.withResolvers<string>();
  let calls = 0;
  const read = () => {
    calls++;
    return calls === 1 ? answer : 'at once';
  };
  await using app = open({ id: 'hangs', path: 'name?', read, write: () => 'written' }, { timeoutMs: 5 });
  for (const url of ['/hangs', '/hangs', '/hangs/x']) {
    const response = await app.ask(url);
    assert.equal(response.statusCode, 503);
    const { message, ...rest } = response.json();
    assert.deepEqual(rest, { status: 503, error: 'Service Unavailable' });
    assert.match(message, /^The endpoint hangs (?:did not answer within 5 ms|is still hanging)$/);
  }
  assert.equal(calls, 1);
  assert.equal(app.log[0]?.err?.code, 'CUSTOM_ENDPOINT_TIMEOUT');
  assert.equal((await app.ask(post('/hangs'))).body, 'written');

  end('late');
  await answer;
  assert.equal((await app.read()).body, 'at once');
  assert.equal(calls, 2);
});
