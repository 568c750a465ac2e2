import assert from 'node:assert/strict';
import { test } from 'node:test';
import Fastify from 'fastify';
import { type CustomEndpoint, customEndpoint } from './custom-endpoint.ts';
import { refuse } from './error-format.ts';

/** Reads an endpoint once; `log` holds the entries that were written meanwhile. */
async function read(endpoint: CustomEndpoint, timeoutMs?: number) {
  const log: { reqId?: string; err?: { code: string; stack: string } }[] = [];
  const stream = { write: (line: string) => void log.push(JSON.parse(line)) };
  await using app = Fastify({ logger: { level: 'error', stream } });
  app.setErrorHandler(refuse);
  customEndpoint(endpoint, timeoutMs).addRoutes(app);
  const response = await app.inject({ url: `/${endpoint.id}`, headers: { accept: 'application/json' } });
  return { response, log };
}

test('the string is the reply, as it is', async () => {
  for (const text of ['hello', '', '{"a":1}', 'grüß\n']) {
    for (const answer of [() => text, async () => text]) {
      const { response } = await read({ id: 'mine', read: answer });
      assert.equal(response.statusCode, 200);
      assert.equal(response.headers['content-type'], 'text/plain; charset=utf-8');
      assert.equal(response.headers['cache-control'], 'no-store');
      assert.equal(response.headers['x-content-type-options'], 'nosniff');
      assert.equal(response.body, text);
    }
  }
});

test('read keeps its this', async () => {
  class Page {
    readonly id = 'page';
    readonly text = 'mine';
    read() {
      return this.text;
    }
  }
  assert.equal((await read(new Page())).response.body, 'mine');
});

test('a failure is 500 without its message, and logged with the id of the request', async () => {
  const fail = () => {
    throw Object.assign(new Error('password is 1234'), { statusCode: 404 });
  };
  for (const failing of [fail, async () => fail()]) {
    const { response, log } = await read({ id: 'broken', read: failing });
    assert.equal(response.statusCode, 500);
    assert.deepEqual(response.json(), { status: 500, error: 'Internal Server Error' });
    assert.equal(log.length, 1);
    assert.equal(log[0]?.reqId, 'req-1');
    assert.equal(log[0]?.err?.code, 'CUSTOM_ENDPOINT');
    assert.match(log[0]?.err?.stack ?? '', /password is 1234/);
  }
});

test('what is no string is 500', async () => {
  for (const answer of [undefined, 1, { a: 1 }]) {
    for (const wrong of [() => answer, async () => answer]) {
      const { response } = await read({ id: 'wrong', read: wrong as unknown as () => string });
      assert.equal(response.statusCode, 500);
    }
  }
});

test('an endpoint that hangs is cut with 503', async () => {
  const { response, log } = await read({ id: 'hangs', read: () => new Promise(() => {}) }, 5);
  assert.equal(response.statusCode, 503);
  assert.deepEqual(response.json(), { status: 503, error: 'Service Unavailable' });
  assert.equal(log[0]?.err?.code, 'CUSTOM_ENDPOINT_TIMEOUT');
});
