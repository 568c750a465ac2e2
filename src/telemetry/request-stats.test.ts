import assert from 'node:assert/strict';
import { test } from 'node:test';
import Fastify, { type FastifyInstance, type onResponseHookHandler } from 'fastify';
import { Metrics } from './metrics.ts';
import { ExchangeLog, RequestStats, RequestTail } from './request-stats.ts';

/** An application with routes of all kinds, some of them in a plugin. */
async function start(metrics: Metrics): Promise<FastifyInstance> {
  const app = Fastify();
  new RequestStats('rest', metrics).listen(app);
  app.get('/users/:id', () => 'user');
  app.route({ method: ['POST', 'PUT'], url: '/users', handler: (_request, reply) => reply.code(201).send() });
  app.get('/fails', () => {
    throw new Error('no');
  });
  let own = 0;
  app.register(
    async (scope) => {
      scope.setNotFoundHandler((_request, reply) => reply.code(404).send('own'));
      const onResponse: onResponseHookHandler = (_request, _reply, done) => {
        own++;
        done();
      };
      scope.get('/hooked', { onResponse }, () => String(own));
    },
    { prefix: '/inner' },
  );
  await app.ready();
  return app;
}

/** How often each series was recorded. */
function counts(metrics: Metrics): Record<string, number> {
  const all = Array.from(metrics.meter('http.server.requests')?.series() ?? [], (series) => [
    series.tags.map(({ value }) => value).join(' '),
    series.measure()[0]?.value,
  ]);
  return Object.fromEntries(all);
}

test('each request is timed once, by its template, method and status', async () => {
  using metrics = new Metrics();
  await using app = await start(metrics);
  const requests = [
    ['GET', '/users/1'],
    ['GET', '/users/2?x=1'],
    ['HEAD', '/users/3'],
    ['POST', '/users'],
    ['PUT', '/users'],
    ['GET', '/fails'],
    ['GET', '/inner/hooked'],
    ['GET', '/inner/hooked'],
    ['GET', '/nothing/1'],
    ['GET', '/nothing/2'],
    ['GET', '/inner/nothing'],
    ['DELETE', '/users'],
  ] as const;
  for (const [method, url] of requests) await app.inject({ method, url });
  assert.deepEqual(counts(metrics), {
    'rest /users/:id GET 200': 2,
    'rest /users/:id HEAD 200': 1,
    'rest /users POST 201': 1,
    'rest /users PUT 201': 1,
    'rest /fails GET 500': 1,
    'rest /inner/hooked GET 200': 2,
    'rest none GET 404': 3,
    'rest none DELETE 404': 1,
  });
  assert.equal((await app.inject('/inner/hooked')).body, '2', "a route's own hook still runs");
});

test('the time is that of the request, in seconds', async () => {
  using metrics = new Metrics();
  const app = Fastify();
  new RequestStats('rest', metrics).listen(app);
  app.get('/', async () => {
    await new Promise((resolve) => setTimeout(resolve, 30));
    return 'late';
  });
  await using started = app;
  const began = performance.now();
  await started.inject('/');
  const most = (performance.now() - began) / 1_000;
  const [series] = metrics.meter('http.server.requests')?.series() ?? [];
  const total = series?.measure()[1]?.value ?? 0;
  assert.ok(total > 0.02 && total <= most, `${total} of ${most} s`);
  assert.equal(
    Array.from(series?.bucketCounts ?? []).reduce((sum, count) => sum + count),
    1,
  );
});

async function keepIn(log: ExchangeLog) {
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
  await using app = await keepIn(log);
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
  await using app = await keepIn(log);
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
  await using app = await keepIn(log);
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

test('the last replies are kept, the latest first', () => {
  using tail = new RequestTail(3);
  assert.deepEqual(tail.latest(), []);
  for (const status of [200, 201, 404, 500]) tail.record('rest', '/users/:id', 'GET', status, status / 8);
  assert.deepEqual(
    tail.latest().map(({ number, status, duration }) => [number, status, duration]),
    [
      [4, 500, 62.5],
      [3, 404, 50.5],
      [2, 201, 25.125],
    ],
  );
  const [{ door, route, method, endedAt } = assert.fail()] = tail.latest();
  assert.deepEqual([door, route, method], ['rest', '/users/:id', 'GET']);
  assert.ok(endedAt > 0);
});

test('the requests of the console are not counted, but read; a route of that name at another door is', () => {
  using metrics = new Metrics();
  using tail = new RequestTail(4);
  const read: string[] = [];
  const counted = (door: string, uri: string) => {
    const stats = new RequestStats(door, metrics, tail);
    stats.read(() => read.push(`${door} ${uri}`));
    stats.recorderOf(uri)('GET', 500, 5, { exchange: () => ({}) as never });
    return [stats.replies, stats.errors];
  };
  for (const uri of [
    '/actuator/console',
    '/actuator/console/api/history',
    '/actuator/console/assets/:name',
  ]) {
    assert.deepEqual(counted('management', uri), [0, 0], uri);
  }
  assert.deepEqual(counted('management', '/actuator/health'), [1, 1]);
  assert.deepEqual(counted('rest', '/console'), [1, 1]);
  assert.deepEqual(
    tail.latest().map(({ route }) => route),
    ['/console', '/actuator/health'],
  );
  assert.deepEqual(Object.keys(counts(metrics)), [
    'management /actuator/health GET 500',
    'rest /console GET 500',
  ]);
  assert.equal(read.length, 5);
});
