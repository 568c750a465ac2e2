import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import Fastify, { type FastifyInstance, type FastifyServerOptions } from 'fastify';
import { pino } from 'pino';
import { rounds } from '../../test/support/proof-settings.ts';
import { HealthRegistry, Readiness } from '../telemetry/health.ts';
import { Loggers } from '../telemetry/loggers.ts';
import { Metrics } from '../telemetry/metrics.ts';
import { exposure } from './guard.ts';
import { management } from './management.ts';

describe('guard', () => {
  // The guard must hold for every spelling of a path that the router understands, over a real socket,
  // because an injected request would be tidied up on its way.

  const basic = (credentials: string) => ({
    authorization: `Basic ${Buffer.from(credentials).toString('base64')}`,
  });
  const ANN = basic('ann:pw');
  const METHODS = ['GET', 'HEAD', 'POST', 'DELETE', 'OPTIONS'] as const;

  /** Stands in every reply of an endpoint, and in no other reply. */
  const MARK = /zq7mark|_links|effectiveLevel/;

  interface Answer {
    readonly status: number;
    readonly body: string;
  }

  /** Counts what its endpoints were asked, as an endpoint can be reached without showing it. */
  interface Door extends AsyncDisposable {
    asked(): number;
    send(method: string, path: string, headers?: Record<string, string>): Promise<Answer>;
  }

  async function openDoor(
    basePath: string,
    options: FastifyServerOptions = {},
    around: (app: FastifyInstance) => void = () => {},
  ): Promise<Door> {
    let asked = 0;
    const mark = () => {
      asked++;
      return 'zq7mark';
    };
    const app = Fastify({ ...options, forceCloseConnections: true });
    around(app);
    const metrics = new Metrics();
    metrics.counter('zq7mark', { description: 'x' });
    metrics.counter('part', { description: 'zq7mark' });
    const loggers = new Loggers(pino({ level: 'silent' }));
    loggers.child('part');
    const property = { value: 'x', origin: 'x', secret: false };
    await app.register(management, {
      basePath,
      include: ['*'],
      exclude: [],
      showValues: 'always',
      users: [{ user: 'ann', password: 'pw', roles: [] }],
      role: undefined,
      maxFailedLogins: 0,
      build: { version: 'zq7mark', artifact: '', name: '' },
      health: new HealthRegistry([
        {
          name: 'part',
          check() {
            asked++;
            return { status: 'UP', details: { x: 'zq7mark' } };
          },
        },
      ]),
      readiness: new Readiness(),
      metrics,
      loggers,
      environment: {
        activeProfiles: ['zq7mark'],
        propertySources: [{ name: 'x', properties: new Map([['part', property]]) }],
      },
      endpoints: [
        { id: 'hello', path: 'name?', read: mark, write: mark, delete: mark },
        { id: 'write', write: mark },
      ],
    });
    await app.listen({ host: '127.0.0.1', port: 0 });
    const { port } = app.server.address() as AddressInfo;
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });

    return {
      asked: () => asked,
      send: (method, path, headers = {}) =>
        new Promise((resolve, reject) => {
          request({ host: '127.0.0.1', port, method, path, headers, agent }, (response) => {
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
  const targets = [
    '',
    'health',
    'health/part',
    'info',
    'metrics',
    'metrics/part',
    'env',
    'env/part',
    'loggers/part',
    'hello',
    'hello/x',
    'write',
    'nope',
  ];

  const spelledPath = (base: string) =>
    fc
      .constantFrom(...targets)
      .chain((target) => {
        const words = [base, ...target.split('/')].filter((word) => word !== '');
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
      const sure = [
        '/health',
        '/%68ealth',
        '/hell%6f',
        '/env?x=1',
        '/%69%6E%66%6f',
        '/hello/x',
        '/loggers/part',
      ];
      const examples = sure.flatMap((path) => METHODS.map((method) => [prefix + path, method, {}] as const));
      const acted = new Map<string, number>();
      const method = fc.constantFrom(...METHODS);
      const stranger = fc.constantFrom({}, basic('ann:wrong'), basic('eve:pw'), { authorization: 'Basic x' });

      await fc.assert(
        fc.asyncProperty(spelledPath(base), method, stranger, async (path, method, headers) => {
          const before = door.asked();
          const refused = await door.send(method, path, headers);
          assert.equal(door.asked(), before, 'an endpoint was asked without credentials');
          assert.doesNotMatch(refused.body, MARK);

          const known = await door.send(method, path, ANN);
          const acts = door.asked() > before || known.status === 204;
          if (acts) acted.set(method, (acted.get(method) ?? 0) + 1);
          // What is there for GET is guarded for the methods too that show nothing of it.
          const there = acts || MARK.test((await door.send('GET', path, ANN)).body);
          if (there) assert.equal(refused.status, 401);
        }),
        {
          numRuns: rounds(400),
          examples: examples.map(([path, method, headers]) => [path, method, headers]),
        },
      );
      for (const method of ['GET', 'HEAD', 'POST', 'DELETE']) {
        assert.ok((acted.get(method) ?? 0) >= 2, `${method} reached hardly an endpoint`);
      }
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
      for (const method of METHODS) {
        assert.equal((await door.send(method, path)).status, 401, `${method} ${path}`);
      }
    }
  });
});

describe('exposure', () => {
  const exposed = (include: string[], exclude: string[] = []) => {
    const isExposed = exposure(include, exclude);
    return ['health', 'info', 'metrics', 'env', 'my-Own.page'].filter(isExposed);
  };

  test('what is included is exposed, and nothing else', () => {
    assert.deepEqual(exposed([]), []);
    assert.deepEqual(exposed(['health', 'env', 'unknown']), ['health', 'env']);
    assert.deepEqual(exposed(['*']), ['health', 'info', 'metrics', 'env', 'my-Own.page']);
  });

  test('exclude wins', () => {
    assert.deepEqual(exposed(['*'], ['env']), ['health', 'info', 'metrics', 'my-Own.page']);
    assert.deepEqual(exposed(['health', 'env'], ['env']), ['health']);
    assert.deepEqual(exposed(['health'], ['*']), []);
  });

  test('case, dashes and dots of a name do not count', () => {
    assert.deepEqual(exposed(['HEALTH', 'MyOwnPage']), ['health', 'my-Own.page']);
    assert.deepEqual(exposed(['*'], ['my.own-page', 'I-N-F-O']), ['health', 'metrics', 'env']);
  });
});
