import assert from 'node:assert/strict';
import { test } from 'node:test';
import Fastify, { type FastifyInstance, type onResponseHookHandler } from 'fastify';
import { Metrics } from './metrics.ts';
import { timeRequests } from './request-metrics.ts';

/** An application with routes of all kinds, some of them in a plugin. */
async function start(metrics: Metrics): Promise<FastifyInstance> {
  const app = Fastify();
  timeRequests(app, 'rest', metrics);
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
  timeRequests(app, 'rest', metrics);
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
