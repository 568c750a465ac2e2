import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import Fastify, { type FastifyInstance } from 'fastify';
import type { Meter } from '../../telemetry/meters.ts';
import { Metrics } from '../../telemetry/metrics.ts';
import { refuse } from '../management-errors.ts';
import { addRoutes } from '../operations.ts';
import { describeMetric, metricsEndpoint } from './metrics.ts';

describe('metrics', () => {
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
});

describe('metric description', () => {
  const meterOf = (metrics: Metrics, name: string): Meter => metrics.meter(name) ?? assert.fail(name);

  test('counts and times are added, maxima are the largest, the given tag is no longer open', () => {
    using metrics = new Metrics();
    const timer = metrics.timer('http.server.requests', {
      description: 'Requests',
      tags: ['uri', 'status'],
    });
    timer.with('uri', '/a', 'status', '200').record(1);
    timer.with('uri', '/a', 'status', '500').record(0.5);
    timer.with('uri', '/b', 'status', '200').record(4);
    const meter = meterOf(metrics, 'http.server.requests');
    assert.deepEqual(describeMetric(meter, []), {
      name: 'http.server.requests',
      description: 'Requests',
      baseUnit: 'seconds',
      measurements: [
        { statistic: 'COUNT', value: 3 },
        { statistic: 'TOTAL_TIME', value: 5.5 },
        { statistic: 'MAX', value: 4 },
      ],
      availableTags: [
        { tag: 'uri', values: ['/a', '/b'] },
        { tag: 'status', values: ['200', '500'] },
      ],
    });
    assert.deepEqual(describeMetric(meter, [{ key: 'uri', value: '/a' }]), {
      name: 'http.server.requests',
      description: 'Requests',
      baseUnit: 'seconds',
      measurements: [
        { statistic: 'COUNT', value: 2 },
        { statistic: 'TOTAL_TIME', value: 1.5 },
        { statistic: 'MAX', value: 1 },
      ],
      availableTags: [{ tag: 'status', values: ['200', '500'] }],
    });
  });

  test('a meter without a series has measured nothing; with tags there is nothing to show', () => {
    using metrics = new Metrics();
    metrics.timer('t', { description: 'x', tags: ['k'] });
    assert.deepEqual(describeMetric(meterOf(metrics, 't'), [])?.measurements, [
      { statistic: 'COUNT', value: 0 },
      { statistic: 'TOTAL_TIME', value: 0 },
      { statistic: 'MAX', value: 0 },
    ]);
    assert.equal(describeMetric(meterOf(metrics, 't'), [{ key: 'k', value: 'v' }]), undefined);
  });

  test('what is no JSON number is written by its name', () => {
    using metrics = new Metrics();
    for (const value of [Number.NaN, Infinity, -Infinity]) {
      metrics.gauge(
        `g.${String(value).replace(/\W/g, 'minus').toLowerCase()}`,
        { description: 'x' },
        () => value,
      );
    }
    const values = [...metrics.meters()].flatMap(
      (meter) => describeMetric(meter, [])?.measurements.map(({ value }) => value) ?? [],
    );
    assert.deepEqual(values, ['Infinity', '-Infinity', 'NaN']);
  });

  test('any drill-down is what a list of all records gives', () => {
    const tags = fc.tuple(fc.constantFrom('x', 'y', 'overflow'), fc.constantFrom('1', '2', '3'));
    const record = fc.tuple(tags, fc.nat(50));
    const asked = fc.array(
      fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('x', 'y', '1', '2', 'z')),
      {
        maxLength: 3,
      },
    );
    fc.assert(
      fc.property(fc.array(record), asked, (records, filter) => {
        using metrics = new Metrics();
        const timer = metrics.timer('t', { description: 'x', tags: ['a', 'b'] });
        for (const [[a, b], seconds] of records) timer.with('a', a, 'b', b).record(seconds);

        const matching = records.filter(([[a, b]]) =>
          filter.every(([key, value]) => (key === 'a' && value === a) || (key === 'b' && value === b)),
        );
        const found = describeMetric(
          meterOf(metrics, 't'),
          filter.map(([key, value]) => ({ key, value })),
        );
        if (matching.length === 0 && filter.length > 0) return assert.equal(found, undefined);
        const values = matching.map(([, seconds]) => seconds);
        assert.deepEqual(found?.measurements, [
          { statistic: 'COUNT', value: values.length },
          { statistic: 'TOTAL_TIME', value: values.reduce((sum, value) => sum + value, 0) },
          { statistic: 'MAX', value: Math.max(0, ...values) },
        ]);
        const open = (['a', 'b'] as const)
          .map((tag, i) => ({ tag, values: [...new Set(matching.map(([pair]) => pair[i]))].sort() }))
          .filter(({ tag, values: ofTag }) => ofTag.length > 0 && !filter.some(([key]) => key === tag));
        assert.deepEqual(found?.availableTags, open);
      }),
    );
  });
});
