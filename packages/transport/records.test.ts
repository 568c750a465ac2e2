import assert from 'node:assert/strict';
import { test } from 'node:test';
import Fastify from 'fastify';
import { ExchangeLog } from './records.ts';

async function open(log: ExchangeLog) {
  const app = Fastify();
  log.listen(app);
  app.get('/fails', () => {
    throw new Error('x');
  });
  app.get('/*', (_request, reply) => reply.header('x-own', 'yes').send('text'));
  await app.ready();
  return app;
}

test('an exchange is kept whole', async () => {
  const log = new ExchangeLog();
  await using app = await open(log);
  const before = Date.now();
  await app.inject({ url: '/a?b=c', headers: { host: 'h:1', authorization: 'Basic x' } });
  const [exchange, ...more] = log.latest();
  assert.deepEqual(more, []);
  assert.ok(exchange !== undefined);
  assert.ok(exchange.endedAt >= before && exchange.endedAt <= Date.now());
  assert.ok(exchange.duration >= 0);
  assert.equal(
    `${exchange.method} ${exchange.scheme}://${exchange.host}${exchange.target}`,
    'GET http://h:1/a?b=c',
  );
  assert.equal(exchange.requestHeaders.authorization, 'Basic x');
  assert.equal(exchange.status, 200);
  assert.equal(exchange.responseHeaders()['x-own'], 'yes');
});

test('refusals and failures are exchanges too', async () => {
  const log = new ExchangeLog();
  await using app = await open(log);
  await app.inject('/fails');
  await app.inject({ method: 'POST', url: '/nope' });
  assert.deepEqual(
    log.latest().map(({ method, target, status }) => [method, target, status]),
    [
      ['POST', '/nope', 404],
      ['GET', '/fails', 500],
    ],
  );
});

test('only the last ones are kept, the latest first', async () => {
  const log = new ExchangeLog(3);
  await using app = await open(log);
  const targets = () => log.latest().map(({ target }) => target);
  assert.deepEqual(targets(), []);
  for (const [url, expected] of [
    ['/1', ['/1']],
    ['/2', ['/2', '/1']],
    ['/3', ['/3', '/2', '/1']],
    ['/4', ['/4', '/3', '/2']],
    ['/5', ['/5', '/4', '/3']],
    ['/6', ['/6', '/5', '/4']],
    ['/7', ['/7', '/6', '/5']],
  ] as const) {
    await app.inject(url);
    assert.deepEqual(targets(), expected);
  }
});
