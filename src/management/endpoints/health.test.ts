import assert from 'node:assert/strict';
import { test } from 'node:test';
import Fastify, { type InjectOptions } from 'fastify';
import {
  type HealthIndicator,
  HealthRegistry,
  type HealthStatus,
  Readiness,
} from '../../telemetry/health.ts';
import { Metrics } from '../../telemetry/metrics.ts';
import { management } from '../management.ts';
import type { ManagementOptions } from '../options.ts';

const CHECKS: readonly HealthIndicator[] = [
  { name: 'db', check: () => ({ status: 'UP' }) },
  { name: 'mine', check: () => 3 },
  {
    name: 'parts',
    check: async () => ({
      components: {
        a: { status: 'UP' },
        b: { components: { c: { status: 'UP', details: { n: 1 } } }, status: 'UP' },
      },
    }),
  },
];

async function start(changes: Partial<ManagementOptions> = {}) {
  const app = Fastify();
  const options: ManagementOptions = {
    basePath: '/actuator',
    include: ['*'],
    exclude: [],
    showValues: 'never',
    users: [],
    role: undefined,
    build: { version: '1', artifact: 'a', name: 'A' },
    health: new HealthRegistry(CHECKS),
    readiness: new Readiness(),
    metrics: new Metrics(),
    environment: { activeProfiles: [], propertySources: [] },
    endpoints: [],
    ...changes,
  };
  await app.register(management, options).ready();
  const get = async (path: string): Promise<[number, unknown]> => {
    const reply = await app.inject(path.startsWith('/') ? path : `/actuator/${path}`);
    return [reply.statusCode, reply.json()];
  };
  return { app, get, [Symbol.asyncDispose]: () => app.close() };
}

const NOT_FOUND = [404, { status: 404, error: 'Not Found', message: 'There is no such endpoint' }];
const ofStatus = (status: HealthStatus) => new HealthRegistry([{ name: 'mine', check: () => ({ status }) }]);

test('a component, at any depth, with the status code of its own status', async () => {
  await using door = await start();
  assert.deepEqual(await door.get('health/db'), [200, { status: 'UP' }]);
  assert.deepEqual(await door.get('health/mine'), [503, { status: 'DOWN', details: { code: 3 } }]);
  assert.deepEqual(await door.get('health/parts'), [
    200,
    {
      status: 'UP',
      components: {
        a: { status: 'UP' },
        b: { status: 'UP', components: { c: { status: 'UP', details: { n: 1 } } } },
      },
    },
  ]);
  assert.deepEqual(await door.get('health/parts/a'), [200, { status: 'UP' }]);
  assert.deepEqual(await door.get('health/parts/b/c'), [200, { status: 'UP', details: { n: 1 } }]);
});

test('DOWN and OUT_OF_SERVICE are 503, the others 200', async () => {
  const codes = { UP: 200, DOWN: 503, OUT_OF_SERVICE: 503, UNKNOWN: 200 };
  for (const [status, code] of Object.entries(codes)) {
    await using door = await start({ health: ofStatus(status as HealthStatus) });
    const component = { status };
    const groups = ['liveness', 'readiness'];
    assert.deepEqual(await door.get('health'), [code, { status, components: { mine: component }, groups }]);
    assert.deepEqual(await door.get('health/mine'), [code, component]);
  }
});

test('a group and its components; groups have no groups', async () => {
  const healthGroups = new Map([['ops', { include: ['mine', 'parts'] }]]);
  await using door = await start({ healthGroups });
  const [status, body] = await door.get('health/ops');
  assert.equal(status, 503);
  assert.deepEqual(Object.keys(body as object), ['status', 'components']);
  assert.deepEqual(Object.keys((body as { components: object }).components), ['mine', 'parts']);
  assert.deepEqual(await door.get('health/ops/mine'), [503, { status: 'DOWN', details: { code: 3 } }]);
  assert.deepEqual(await door.get('health/ops/parts/a'), [200, { status: 'UP' }]);
  const [, whole] = await door.get('health');
  assert.deepEqual((whole as { groups: unknown }).groups, ['liveness', 'ops', 'readiness']);
});

test('only what is asked for is checked', async () => {
  let runs = 0;
  const health = new HealthRegistry([
    { name: 'asked', check: () => ({ status: 'UP' }) },
    {
      name: 'other',
      check() {
        runs++;
        return { status: 'UP' };
      },
    },
  ]);
  await using door = await start({ health, healthGroups: new Map([['some', { include: ['asked'] }]]) });
  for (const path of [
    'health/asked',
    'health/some',
    'health/some/asked',
    'health/liveness',
    '/livez',
    '/readyz',
  ]) {
    await door.get(path);
  }
  assert.equal(runs, 0);
  await door.get('health');
  assert.equal(runs, 1);
});

test('what is not there is 404, whatever the method', async () => {
  await using door = await start({ healthGroups: new Map([['ops', { include: ['mine'] }]]) });
  const unknown = [
    'nope',
    'mine/code',
    'parts/d',
    'parts/b/c/n',
    'ops/db',
    'readinessState',
    'liveness/mine',
  ];
  const odd = ['', 'mine/', 'ops/', 'Mine', 'mine//', '%2f', '__proto__', 'parts/constructor', 'mine%20'];
  for (const path of [...unknown, ...odd]) {
    assert.deepEqual(await door.get(`health/${path}`), NOT_FOUND, path);
  }
  for (const [method, path, expected] of [
    ['POST', 'nope', 404],
    ['DELETE', 'ops/db', 404],
    ['POST', 'mine', 405],
    ['PUT', 'ops/mine', 405],
    ['HEAD', 'db', 200],
    ['HEAD', 'nope', 404],
  ] as const) {
    const { statusCode } = await door.app.inject({
      method,
      url: `/actuator/health/${path}`,
    } as InjectOptions);
    assert.equal(statusCode, expected, `${method} ${path}`);
  }
});

test('the states of the process are members of groups, and no part of the whole', async () => {
  const readiness = new Readiness();
  await using door = await start({ readiness });
  const state = (status: string) => ({ status });
  assert.deepEqual(await door.get('health/readiness'), [
    503,
    { status: 'OUT_OF_SERVICE', components: { db: state('UP'), readinessState: state('OUT_OF_SERVICE') } },
  ]);
  readiness.accept();
  assert.deepEqual(await door.get('health/readiness/readinessState'), [200, state('UP')]);
  assert.deepEqual(await door.get('health/liveness/livenessState'), [200, state('UP')]);
  assert.ok(!JSON.stringify(await door.get('health')).includes('State'));
});

test('details that are not shown hide the components with them', async () => {
  const healthGroups = new Map([
    ['open', { include: ['mine'], showDetails: 'always' }],
    ['closed', { include: ['db'], showDetails: 'never' }],
  ] as const);
  const shown = { status: 'DOWN', components: { mine: { status: 'DOWN', details: { code: 3 } } } };

  await using never = await start({ healthGroups, showDetails: 'never' });
  const groups = ['closed', 'liveness', 'open', 'readiness'];
  assert.deepEqual(await never.get('health'), [503, { status: 'DOWN', groups }]);
  assert.deepEqual(await never.get('health/mine'), NOT_FOUND);
  assert.deepEqual(await never.get('health/liveness'), [200, { status: 'UP' }]);
  assert.deepEqual(await never.get('health/liveness/livenessState'), NOT_FOUND);
  assert.deepEqual(await never.get('health/open'), [503, shown]);
  assert.deepEqual(await never.get('health/open/mine'), [503, shown.components.mine]);

  for (const showDetails of ['when-authorized', 'always'] as const) {
    await using door = await start({ healthGroups, showDetails });
    assert.deepEqual(await door.get('health/mine'), [503, shown.components.mine]);
    assert.deepEqual(await door.get('health/closed'), [200, { status: 'UP' }]);
    assert.deepEqual(await door.get('health/closed/db'), NOT_FOUND);
  }
});

test('a secret in a detail stays hidden', async () => {
  const health = new HealthRegistry([{ name: 'mine', check: () => assert.fail('no answer for s3cret') }]);
  await using door = await start({ health, secrets: { texts: ['s3cret'] } });
  const text = JSON.stringify(await door.get('health/mine'));
  assert.match(text, /no answer for \*{6}/);
});

test('groups that cannot be made stop the start', async () => {
  const healthGroups = new Map([['ops', { include: ['disk'] }]]);
  await assert.rejects(start({ healthGroups }), {
    code: 'MANAGEMENT_OPTIONS',
    message: /"ops" names "disk"/,
  });
  const health = ofStatus('UP').with([{ name: 'livenessState', check: () => 0 }]);
  await assert.rejects(start({ health }), { code: 'HEALTH_CHECK_NAME' });
});
