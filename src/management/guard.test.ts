import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import fc from 'fast-check';
import Fastify, { type FastifyInstance, type FastifyServerOptions } from 'fastify';
import { HealthRegistry } from '../observability/health-registry.ts';
import { Metrics } from '../observability/metrics.ts';
import { Readiness } from '../observability/readiness.ts';
import { management } from './management.ts';

// The guard must hold for every spelling of a path that the router understands, over a real socket,
// because an injected request would be tidied up on its way.

const AUTHORIZATION = `Basic ${Buffer.from('ann:pw').toString('base64')}`;

/** Stands in every reply of an endpoint, and in no other reply. */
const MARK = /zq7mark|_links/;

/** Counts what its endpoints were asked, as an endpoint can be reached without showing it. */
interface Door extends AsyncDisposable {
  reads(): number;
  get(path: string, headers?: Record<string, string>): Promise<{ status: number; body: string }>;
}

async function openDoor(
  basePath: string,
  options: FastifyServerOptions = {},
  around: (app: FastifyInstance) => void = () => {},
): Promise<Door> {
  let reads = 0;
  const app = Fastify({ ...options, forceCloseConnections: true });
  around(app);
  const metrics = new Metrics();
  metrics.counter('zq7mark', { description: 'x' });
  await app.register(management, {
    basePath,
    include: ['*'],
    exclude: [],
    showValues: 'always',
    users: [{ user: 'ann', password: 'pw', roles: [] }],
    role: undefined,
    build: { version: 'zq7mark', artifact: '', name: '' },
    health: new HealthRegistry([
      {
        name: 'zq7mark',
        check() {
          reads++;
          return { status: 'UP' };
        },
      },
    ]),
    readiness: new Readiness(),
    metrics,
    environment: { activeProfiles: ['zq7mark'], propertySources: [] },
    endpoints: [
      {
        id: 'hello',
        read() {
          reads++;
          return 'zq7mark';
        },
      },
    ],
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });

  return {
    reads: () => reads,
    get: (path, headers = {}) =>
      new Promise((resolve, reject) => {
        request({ host: '127.0.0.1', port, path, headers, agent }, (response) => {
          let body = '';
          response.setEncoding('utf8');
          response.on('data', (chunk: string) => {
            body += chunk;
          });
          response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
          response.on('error', reject);
        })
          .on('error', reject)
          .end();
      }),
    async [Symbol.asyncDispose]() {
      agent.destroy();
      await app.close();
    },
  };
}

const hex = (char: string) => char.charCodeAt(0).toString(16);

/** One way to write one character. */
const spellings: readonly ((char: string) => string)[] = [
  (char) => char,
  (char) => char.toUpperCase(),
  (char) => `%${hex(char)}`,
  (char) => `%${hex(char).toUpperCase()}`,
  (char) => `%25${hex(char)}`,
  (char) => `%${hex(char.toUpperCase())}`,
];

const spelledWord = (word: string) =>
  fc
    .tuple(
      ...[...word].map(() =>
        fc.oneof({ weight: 12, arbitrary: fc.constant(0) }, fc.nat(spellings.length - 1)),
      ),
    )
    .map((choices) => [...word].map((char, i) => spellings[choices[i] ?? 0]?.(char) ?? char).join(''));

const separator = fc.oneof(
  { weight: 6, arbitrary: fc.constant('/') },
  fc.constantFrom(
    '//',
    '/./',
    '/x/../',
    '/%2e/',
    '/x/%2E%2e/',
    '%2F',
    '%2f',
    '\\',
    '/;a=b/',
    '/..;/',
    '/%09/',
  ),
);
const before = fc.oneof(
  { weight: 6, arbitrary: fc.constant('') },
  fc.constantFrom(
    'http://127.0.0.1',
    'https://elsewhere:1',
    'HTTP://u:p@h',
    '/x/..',
    '/.',
    '/livez/..',
    '/livez/%2e%2e',
  ),
);
const after = fc.oneof(
  { weight: 6, arbitrary: fc.constant('') },
  fc.constantFrom(
    '/',
    '//',
    '?x=1',
    '?/livez',
    ';x',
    '#/livez',
    '%00',
    '/.',
    '/..',
    '/livez',
    '%20',
    '%zz',
    '%c0%af',
  ),
);
const targets = ['', 'health', 'info', 'metrics', 'env', 'hello', 'nope'];

const spelledPath = (base: string) =>
  fc
    .constantFrom(...targets)
    .chain((target) => {
      const words = [base, target].filter((word) => word !== '');
      const parts = words.map((word) => fc.tuple(separator, spelledWord(word)));
      return fc.tuple(before, fc.tuple(...parts), after);
    })
    .map(([start, parts, end]) => {
      const path = `${parts.flat().join('')}${end}`;
      // Without a slash here it is no request at all.
      return `${start}${path.startsWith('/') || start.endsWith('..') ? '' : '/'}${path}`;
    });

const lenient = {
  caseSensitive: false,
  ignoreTrailingSlash: true,
  ignoreDuplicateSlashes: true,
  useSemicolonDelimiter: true,
};
const catchAll = (app: FastifyInstance) => {
  app.all('/*', () => 'a page');
};

for (const [title, basePath, open] of [
  ['a plain application', '/actuator', () => openDoor('/actuator')],
  ['a lenient router', '/actuator', () => openDoor('/actuator', { routerOptions: lenient })],
  ['a catch-all route', '/actuator', () => openDoor('/actuator', {}, catchAll)],
  ['a plain application', '/', () => openDoor('/')],
  ['a lenient router', '/', () => openDoor('/', { routerOptions: lenient })],
] as const) {
  test(`no spelling gets around the guard of ${basePath} in ${title}`, async () => {
    await using door = await open();
    const base = basePath.slice(1);
    const prefix = base === '' ? '' : `/${base}`;
    // They reach endpoints, so that the property cannot hold for lack of hits.
    const sure = ['/health', '/%68ealth', '/hell%6f', '/env?x=1', '/%69%6E%66%6f'].map(
      (path) => prefix + path,
    );
    let reached = 0;

    await fc.assert(
      fc.asyncProperty(spelledPath(base), async (path) => {
        const before = door.reads();
        const anonymous = await door.get(path);
        assert.equal(door.reads(), before, 'an endpoint was asked without credentials');
        assert.doesNotMatch(anonymous.body, MARK);

        const known = await door.get(path, { authorization: AUTHORIZATION });
        if (!MARK.test(known.body)) return;
        reached++;
        assert.equal(anonymous.status, 401);
      }),
      { numRuns: 300, examples: sure.map((path) => [path]) },
    );
    assert.ok(reached >= sure.length, `only ${reached} spellings reached an endpoint`);
  });
}

test('unknown paths are guarded in every spelling of the base path', async () => {
  await using door = await openDoor('/actuator');
  for (const path of [
    '/actuator',
    '/actuator/',
    '/actuator//',
    '/actuator/nope',
    '/%61ctuator/nope',
    '/actuator/../nope',
    '/actuator/a/b?c',
    'http://h/actuator/nope',
  ]) {
    assert.equal((await door.get(path)).status, 401, path);
  }
});
