import assert from 'node:assert/strict';
import { test } from 'node:test';
import Fastify, { type FastifyInstance } from 'fastify';
import { Metrics } from '../../observability/metrics/metrics.ts';
import { refuse } from '../management-errors.ts';
import { addRoutes } from '../operations.ts';
import { metricsEndpoint } from './metrics.ts';

async function start(): Promise<FastifyInstance> {
  const app = Fastify();
  app.setErrorHandler(refuse);
  const metrics = new Metrics();
  app.addHook('onClose', async () => metrics[Symbol.dispose]());
  const timer = metrics.timer('http.server.requests', { description: 'Requests', tags: ['uri', 'status'] });
  timer.with('uri', 'a:b,c', 'status', '200').record(1);
  timer.with('uri', '/x', 'status', '200').record(2);
  timer.with('uri', '/x', 'status', '404').record(0.5);
  metrics.gauge('broken', { description: 'No number' }, () => Number.NaN);
  addRoutes(app, metricsEndpoint(metrics).routes(app));
  await app.ready();
  return app;
}

test('a meter by its name, without what it does not have', async () => {
  await using app = await start();
  const response = await app.inject('/metrics/broken');
  assert.equal(response.statusCode, 200);
  assert.equal(response.headers['content-type'], 'application/vnd.spring-boot.actuator.v3+json');
  assert.equal(response.headers['cache-control'], 'no-store');
  assert.deepEqual(response.json(), {
    name: 'broken',
    description: 'No number',
    measurements: [{ statistic: 'VALUE', value: 'NaN' }],
    availableTags: [],
  });
  const names = (await app.inject('/metrics')).json();
  assert.deepEqual(names, { names: ['broken', 'http.server.requests'] });
});

test('tags narrow it down, the same one twice as well, and a value may hold a colon', async () => {
  await using app = await start();
  const read = async (query: string) => {
    const response = await app.inject(`/metrics/http.server.requests${query}`);
    if (response.statusCode !== 200) return response.statusCode;
    const { measurements, availableTags } = response.json();
    return [measurements.map(({ value }: { value: number }) => value), availableTags];
  };
  const statuses = { tag: 'status', values: ['200', '404'] };
  assert.deepEqual(await read(''), [
    [3, 3.5, 2],
    [{ tag: 'uri', values: ['/x', 'a:b,c'] }, statuses],
  ]);
  assert.deepEqual(await read('?tag=uri:/x'), [[2, 2.5, 2], [statuses]]);
  assert.deepEqual(await read('?tag=uri:/x&tag=uri:/x'), [[2, 2.5, 2], [statuses]]);
  assert.deepEqual(await read('?tag=uri:/x&tag=status:404'), [[1, 0.5, 0.5], []]);
  assert.deepEqual(await read('?tag=uri:a:b,c'), [[1, 1, 1], [{ tag: 'status', values: ['200'] }]]);
  assert.deepEqual(await read('?tag=uri%3A%2Fx'), [[2, 2.5, 2], [statuses]]);
  assert.deepEqual(await read('?tag='), await read(''));
  assert.equal(await read('?tag=uri:/y'), 404);
  assert.equal(await read('?tag=uri:/x&tag=uri:a:b,c'), 404);
  assert.equal(await read('?tag=nothing:x'), 404);
  assert.equal(await read('?tag=uri'), 400);
  assert.equal(await read('?tag=uri:/x&tag=status'), 400);
});

test('what is no meter is 404, and the refusals are in the format of the door', async () => {
  await using app = await start();
  for (const path of ['/metrics/nothing', '/metrics/HTTP.server.requests', '/metrics/__proto__']) {
    const response = await app.inject(path);
    assert.equal(response.statusCode, 404, path);
    assert.equal(response.json().message, 'There is no such meter, or none with these tags');
  }
  const wrong = await app.inject('/metrics/broken?tag=x');
  assert.deepEqual(wrong.json(), {
    status: 400,
    error: 'Bad Request',
    message: 'Each tag parameter must be in the form key:value',
  });
  assert.equal((await app.inject({ method: 'POST', url: '/metrics/broken' })).statusCode, 405);
});
