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

test('an request is kept whole', async () => {
  const log = new ExchangeLog();
  await using app = await open(log);
  const before = Date.now();
  await app.inject({ url: '/a?b=c', headers: { host: 'h:1', authorization: 'Basic x' } });
  const [ctx, ...more] = log.latest();
  assert.deepEqual(more, []);
  assert.ok(ctx !== undefined);
  assert.ok(ctx.endedAt >= before && ctx.endedAt <= Date.now());
  assert.ok(ctx.duration >= 0);
  assert.equal(`${ctx.method} ${ctx.scheme}://${ctx.host}${ctx.target}`, 'GET http://h:1/a?b=c');
  assert.equal(ctx.requestHeaders.authorization, 'Basic x');
  assert.equal(ctx.status, 200);
  assert.equal(ctx.responseHeaders()['x-own'], 'yes');
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
