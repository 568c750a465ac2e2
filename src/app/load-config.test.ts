import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { ConfigError } from '../config/load.ts';
import { type OptionKey, optionOf, type Settings, settingKeys } from '../config/options/options.ts';
import { crossCheck, loadConfig } from './load-config.ts';

describe('load', () => {
  async function problemsOf(loading: Promise<unknown>): Promise<readonly string[]> {
    return loading.then(
      () => [],
      (error: unknown) => {
        assert.ok(error instanceof ConfigError, String(error));
        return error.problems;
      },
    );
  }

  test('with nothing given all settings have their defaults', async () => {
    await using folder = await temporaryFolder();
    const { settings, code, file, sources } = await loadConfig({ argv: [], env: {}, cwd: folder.path });
    for (const key of settingKeys) assert.deepEqual(settings[key], optionOf(key).default, key);
    assert.equal(file, undefined);
    assert.deepEqual(
      [code.healthChecks.size, code.handlers.size, code.endpoints, code.users],
      [0, 0, [], []],
    );
    assert.deepEqual(
      sources.map(({ name }) => name),
      ['commandLineArgs', 'systemEnvironment', 'defaults'],
    );
  });

  test('a module of settings and code is read', async () => {
    await using folder = await temporaryFolder();
    const defineConfig = join(import.meta.dirname, '..', 'define-config.ts');
    await writeFile(
      join(folder.path, 'portico.config.ts'),
      `import { defineConfig } from ${JSON.stringify(defineConfig)};
export default defineConfig({
  rest: { port: 9000 },
  management: {
    role: 'ADMIN',
    healthChecks: { disk: (signal: AbortSignal) => (signal.aborted ? 1 : 0) },
    endpoints: [{ id: 'motd', read: () => 'hello' }],
    users: [{ user: 'ops', password: 'p', roles: ['ADMIN'] }],
  },
  webhook: { handlers: { ping: async ({ id }, { log }) => log.info(id) } },
});`,
    );
    const { settings, code, file } = await loadConfig({ argv: [], env: {}, cwd: folder.path });
    assert.equal(settings['rest.port'], 9000);
    assert.equal(settings['management.role'], 'ADMIN');
    assert.equal(await code.healthChecks.get('disk')?.check(AbortSignal.abort()), 1);
    assert.equal(await code.endpoints[0]?.read?.({ path: {}, query: {} }), 'hello');
    assert.deepEqual(code.users, [{ user: 'ops', password: 'p', roles: ['ADMIN'] }]);
    assert.deepEqual([...code.handlers.keys()], ['ping']);
    assert.equal(file, join(folder.path, 'portico.config.ts'));
  });

  test('a promise, CommonJS and JSON with a byte order mark are modules too', async () => {
    const modules = {
      'promise.ts': 'export default Promise.resolve({ rest: { port: 9000 } });',
      'common.cjs': 'module.exports = { rest: { port: 9000 } };',
      'bom.json': '\uFEFF{"rest": {"port": 9000}}',
    };
    await using folder = await temporaryFolder();
    for (const [name, content] of Object.entries(modules)) {
      await writeFile(join(folder.path, name), content);
      const { settings } = await loadConfig({ argv: [], env: { CONFIG: name }, cwd: folder.path });
      assert.equal(settings['rest.port'], 9000, name);
    }
  });

  test('all problems of all sources are listed at once', async () => {
    await using folder = await temporaryFolder();
    await writeFile(
      join(folder.path, 'portico.config.ts'),
      `export default {
  mangement: {},
  graphql: { path: 'graphql', users: 'redis' },
  management: { healthChecks: { disk: 'df' }, endpoints: [{ id: 'info', read: () => '' }] },
  webhook: { port: '3000' },
};`,
    );
    const argv = [
      '--rest-prot',
      '1',
      '--log-level=loud',
      '--host',
      '--graphql-port=1',
      '--graphql-port=2',
      'now',
    ];
    const env = {
      DATABASE_URL: 'mysql://root:hunter2@db/x',
      MANAGEMENT_PORT: '8000',
      MANAGEMENT_USER: 'admin',
      WEBHOOK_SECRET: '',
      INTERFACES: 'rest,management',
      SHUTDOWN_PRE_STOP_DELAY: '1s',
    };
    const loading = loadConfig({ argv, env, cwd: folder.path });
    const expected = [
      '"--rest-prot" is not an option; did you mean --rest-port?',
      '--log-level must be one of fatal, error, warn, info, debug, trace, silent, not "loud"',
      '--host needs a value; write --host=<value> for one that begins with "-"',
      '--graphql-port is given more than once',
      'a word after "--graphql-port" and its value is not expected; put a value with spaces in quotes',
      'DATABASE_URL must be sqlite:<file>, sqlite::memory: or postgres://<user>:<password>@<host>/<database>',
      'WEBHOOK_SECRET is empty; unset it to leave the door unsecured',
      'SHUTDOWN_PRE_STOP_DELAY must be a whole number from 0 to 300000 (milliseconds), not "1s"',
      'portico.config.ts has an unknown key "mangement"; did you mean management?',
      'portico.config.ts: graphql.path must be a path like /graphql: it begins with "/", does not end with "/", and between slashes has only letters, digits, "_", "~", "-" and single ".", not "graphql"',
      'portico.config.ts: graphql.users must be one of memory, database, not "redis"',
      'portico.config.ts: webhook.port must be a whole number from 0 to 65535, or unix:/path (of a socket, at most 103 bytes), not "3000"',
      'portico.config.ts: management.healthChecks.disk must be a function, or an object with a function as its "check"',
      'portico.config.ts: management.endpoints[0].id "info" names the same endpoint as the built-in info; rename it',
      'management.user is set and management.password is not; set both (MANAGEMENT_PASSWORD) or none',
      'rest.port and management.port are both 8000; every door needs its own port',
    ];
    assert.deepEqual(await problemsOf(loading), expected);
    await assert.rejects(loading, {
      code: 'CONFIG_INVALID',
      message: `The configuration is not valid:\n${expected.map((problem) => `  - ${problem}`).join('\n')}`,
    });
  });

  test('a problem of a weaker source counts even when a stronger one sets the option', async () => {
    await using folder = await temporaryFolder();
    const problems = await problemsOf(
      loadConfig({ argv: ['--rest-port=1'], env: { REST_PORT: 'x' }, cwd: folder.path }),
    );
    assert.deepEqual(problems, [
      'REST_PORT must be a whole number from 0 to 65535, or unix:/path (of a socket, at most 103 bytes), not "x"',
    ]);
  });

  test('what follows from a problem is no problem of its own', async () => {
    await using folder = await temporaryFolder();
    const env = { MANAGEMENT_USER: 'admin', MANAGEMENT_PASSWORD: '', MANAGEMENT_ROLE: 'ADMIN' };
    assert.deepEqual(await problemsOf(loadConfig({ argv: [], env, cwd: folder.path })), [
      'MANAGEMENT_PASSWORD is empty; unset it to leave the door unsecured',
    ]);
  });

  test('nothing is said to be missing while the module that may hold it is broken', async () => {
    await using folder = await temporaryFolder();
    await writeFile(join(folder.path, 'portico.config.json'), '{');
    const env = { MANAGEMENT_ROLE: 'ADMIN', PORT: 'x' };
    const problems = await problemsOf(loadConfig({ argv: [], env, cwd: folder.path }));
    assert.deepEqual(problems, [
      'PORT must be a whole number from 0 to 65535, or unix:/path (of a socket, at most 103 bytes), not "x"',
      'portico.config.json cannot be loaded: it ends too early (portico.config.json:1:2)',
    ]);
  });

  test('users of the module with mistakes still count as users', async () => {
    await using folder = await temporaryFolder();
    await writeFile(
      join(folder.path, 'portico.config.ts'),
      'export default { management: { users: [{}] } };',
    );
    const problems = await problemsOf(
      loadConfig({ argv: [], env: { MANAGEMENT_ROLE: 'A' }, cwd: folder.path }),
    );
    assert.equal(problems.length, 3);
    for (const problem of problems) assert.match(problem, /management\.users\[0\]/);
  });

  test('every source shows what it sets, where, and what of it is secret', async () => {
    await using folder = await temporaryFolder();
    await writeFile(
      join(folder.path, 'my.json'),
      '{"webhook": {"secret": "s1,s2"}, "log": {"level": "warn"}, "host": "::1"}',
    );
    const argv = ['--rest-port', '0', '--config=my.json', '--database-url=sqlite::memory:'];
    const env = {
      HOME: '/home/x',
      REST_PORT: '9000',
      MANAGEMENT_USER: 'a',
      MANAGEMENT_PASSWORD: 'p',
      NOTHING: undefined,
    };
    const { sources, settings } = await loadConfig({ argv, env, cwd: folder.path });
    assert.equal(settings['rest.port'], 0);
    const shown = sources.map(({ name, properties }) => [name, Object.fromEntries(properties)]);
    assert.deepEqual(shown.slice(0, 3), [
      [
        'commandLineArgs',
        {
          'rest.port': { value: 0, origin: '--rest-port', secret: false },
          'database.url': { value: 'sqlite::memory:', origin: '--database-url', secret: true },
          config: { value: 'my.json', origin: '--config', secret: false },
        },
      ],
      [
        'systemEnvironment',
        {
          HOME: { value: '/home/x', origin: 'System Environment Property "HOME"', secret: false },
          REST_PORT: { value: '9000', origin: 'System Environment Property "REST_PORT"', secret: false },
          MANAGEMENT_USER: {
            value: 'a',
            origin: 'System Environment Property "MANAGEMENT_USER"',
            secret: false,
          },
          MANAGEMENT_PASSWORD: {
            value: 'p',
            origin: 'System Environment Property "MANAGEMENT_PASSWORD"',
            secret: true,
          },
        },
      ],
      [
        'Config resource "my.json"',
        {
          'webhook.secret': { value: ['s1', 's2'], origin: 'my.json: webhook.secret', secret: true },
          'log.level': { value: 'warn', origin: 'my.json: log.level', secret: false },
          host: { value: '::1', origin: 'my.json: host', secret: false },
        },
      ],
    ]);
    const defaults = sources[3]?.properties;
    assert.deepEqual(defaults?.get('rest.port'), { value: 8000, origin: 'default', secret: false });
    assert.equal(defaults?.has('webhook.secret'), false);
  });
});

describe('cross checks', () => {
  const defaults = Object.fromEntries(settingKeys.map((key) => [key, optionOf(key).default])) as Settings;
  const admin = { user: 'admin', password: 'p', roles: [] };

  function check(
    changed: Partial<Settings>,
    { users = [admin].slice(1), broken = [] as OptionKey[], endpoints = [] as { id: string }[] } = {},
  ) {
    const settings = { ...defaults, ...changed };
    return crossCheck({
      settings,
      broken: new Set(broken),
      setsUsers: users.length > 0,
      code: { users, endpoints: endpoints.map(({ id }) => ({ id, read: () => '' })) },
    });
  }

  test('the defaults are fine', () => {
    assert.deepEqual(check({}), []);
  });

  test('user and password go together', () => {
    assert.deepEqual(check({ 'management.user': 'a' }), [
      'management.user is set and management.password is not; set both (MANAGEMENT_PASSWORD) or none',
    ]);
    assert.deepEqual(check({ 'management.password': 'p' }), [
      'management.password is set and management.user is not; set both (MANAGEMENT_USER) or none',
    ]);
    assert.deepEqual(check({ 'management.user': 'a', 'management.password': 'p' }), []);
    assert.deepEqual(check({ 'management.user': 'a' }, { broken: ['management.password'] }), []);
    assert.deepEqual(check({ 'management.springBootAdmin.password': 'p' }), [
      'management.springBootAdmin.password is set and management.springBootAdmin.user is not; set both (SPRING_BOOT_ADMIN_USER) or none',
    ]);
  });

  test('only PostgreSQL has a replica', () => {
    const replica = { 'database.readUrl': 'postgres://replica/x' };
    assert.deepEqual(check(replica), [
      'database.readUrl is set but database.url is no postgres:// URL; only PostgreSQL has replicas',
    ]);
    assert.deepEqual(check({ ...replica, 'database.url': 'postgres://primary/x' }), []);
    assert.deepEqual(check(replica, { broken: ['database.url'] }), []);
  });

  test('a role needs a user', () => {
    const role = { 'management.role': 'ADMIN' };
    assert.deepEqual(check(role), [
      'management.role is set but there is no user; set management.user and management.password, or users',
    ]);
    assert.deepEqual(check(role, { users: [admin] }), []);
    assert.deepEqual(check({ ...role, 'management.user': 'a', 'management.password': 'p' }), []);
    assert.equal(check({ ...role, 'management.password': 'p' }).length, 1);
    assert.deepEqual(check(role, { broken: ['management.user'] }), []);
  });

  test('a user has one password', () => {
    const own = { 'management.user': 'admin', 'management.password': 'p' };
    assert.equal(check(own, { users: [admin] }).length, 1);
    assert.deepEqual(check({ ...own, 'management.user': 'other' }, { users: [admin] }), []);
  });

  test('two open doors do not share a port', () => {
    assert.deepEqual(check({ 'rest.port': 8080, 'webhook.port': 8080 }), [
      'rest.port and management.port are both 8080; every door needs its own port',
      'rest.port and webhook.port are both 8080; every door needs its own port',
    ]);
    assert.deepEqual(check({ 'rest.port': 4000, interfaces: ['rest', 'webhook'] }), []);
    assert.deepEqual(check({ 'rest.port': 0, 'graphql.port': 0 }), []);
    assert.deepEqual(check({ 'rest.port': 4000 }, { broken: ['interfaces'] }), []);
    assert.deepEqual(check({ 'rest.port': 4000 }, { broken: ['graphql.port'] }), []);
  });

  for (const key of ['management.include', 'management.exclude'] as const) {
    test(`${key} names endpoints that are there`, () => {
      assert.deepEqual(check({ [key]: ['helth', 'Thread-Dump', '*', 'beans'] }), [
        `${key} names helth, which is not an endpoint; did you mean health?`,
        `${key} names beans, which is not an endpoint`,
      ]);
      assert.deepEqual(check({ [key]: ['greeting'] }, { endpoints: [{ id: 'greeting' }] }), []);
      assert.deepEqual(check({ [key]: ['greting'] }, { endpoints: [{ id: 'greeting' }] }), [
        `${key} names greting, which is not an endpoint; did you mean greeting?`,
      ]);
      assert.deepEqual(check({ [key]: ['helth'] }, { broken: [key] }), []);
    });
  }

  test('management.endpointAccess names every endpoint once, and none that is not there', () => {
    const access = (...entries: string[]) => check({ 'management.endpointAccess': entries });
    assert.deepEqual(access('shutdwon=unrestricted', 'loggers=none', 'Log-gers=read-only'), [
      'management.endpointAccess names shutdwon, which is not an endpoint; did you mean shutdown?',
      'management.endpointAccess names Log-gers twice; keep one of them',
    ]);
    assert.deepEqual(access('heapdump=unrestricted', 'env=none'), []);
    const settings = { ...defaults, 'management.endpointAccess': ['mine=none'] };
    const given = {
      settings,
      broken: new Set<OptionKey>(),
      setsUsers: false,
      code: { users: [], endpoints: [] },
    };
    const mine = { id: 'mine', read: () => '' };
    assert.equal(crossCheck(given).length, 1);
    assert.deepEqual(crossCheck({ ...given, code: { users: [], endpoints: [mine] } }), []);
    assert.deepEqual(crossCheck({ ...given, broken: new Set<OptionKey>(['management.endpointAccess']) }), []);
  });

  test('backups are scheduled for a database in a file only', () => {
    const every = (url: string) => check({ 'backup.every': '1d', 'database.url': url });
    assert.deepEqual(every('sqlite:portico.db'), []);
    assert.match(every('postgres://h/d').join(), /is on PostgreSQL; "portico backup" says which pg_dump/);
    assert.match(every('sqlite::memory:').join(), /in memory only/);
    assert.deepEqual(check({ 'database.url': 'postgres://h/d' }), []);
  });
});
