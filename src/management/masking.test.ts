import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { managementApp } from '../../test/support/management-app.ts';
import { type Access, accessRules, isSecretName, maskSecrets, maskUserinfo, valueShower } from './masking.ts';

const MASK = '******';

describe('access', () => {
  const LEVELS: readonly Access[] = ['none', 'read-only', 'unrestricted'];

  test("an endpoint's own rule wins over the default, the default over its own level", () => {
    const endpoints = new Map<string, Access>([['log-gers', 'none']]);
    assert.equal(accessRules({})('env', undefined), 'unrestricted');
    assert.equal(accessRules({})('heapdump', 'none'), 'none');
    assert.equal(accessRules({ default: 'read-only' })('heapdump', 'none'), 'read-only');
    assert.equal(accessRules({ default: 'read-only', endpoints })('loggers', undefined), 'none');
    assert.equal(accessRules({ default: 'read-only', endpoints })('Log.gers', undefined), 'none');
    assert.equal(accessRules({ default: 'read-only', endpoints })('env', undefined), 'read-only');
  });

  test('nothing goes beyond the highest level', () => {
    for (const [cap, max] of LEVELS.entries()) {
      for (const [wanted, level] of LEVELS.entries()) {
        const expected = LEVELS[Math.min(cap, wanted)];
        assert.equal(accessRules({ max, default: level })('env', undefined), expected);
        assert.equal(accessRules({ max, endpoints: new Map([['env', level]]) })('env', 'none'), expected);
        assert.equal(accessRules({ max })('env', level), expected);
      }
    }
  });

  test('what is included but closed is not there; what is open but excluded neither', async () => {
    const open = (...ids: readonly string[]) =>
      new Map<string, Access>(ids.map((id) => [id, 'unrestricted']));
    for (const [changes, statuses] of [
      [{}, { heapdump: 404, cpuprofile: 404, env: 200, mine: 200 }],
      [{ access: { endpoints: open('heapdump', 'cpuprofile') } }, { heapdump: 200, cpuprofile: 200 }],
      [{ access: { default: 'read-only' as const } }, { heapdump: 200, env: 200, mine: 200 }],
      [
        { access: { default: 'none' as const, endpoints: open('env') } },
        { heapdump: 404, env: 200, mine: 404 },
      ],
      [{ access: { endpoints: open('heapdump') }, exclude: ['heapdump'] }, { heapdump: 404 }],
      [
        { access: { endpoints: open('heapdump') }, include: ['env'] },
        { heapdump: 404, env: 200 },
      ],
      [{ access: { endpoints: open('heapdump'), max: 'none' as const } }, { heapdump: 404, env: 404 }],
    ] as const) {
      await using app = await managementApp({ endpoints: [{ id: 'mine', read: () => 'x' }], ...changes });
      const { _links } = (await app.inject('/actuator')).json();
      for (const [id, status] of Object.entries(statuses)) {
        const response = await app.inject({ method: 'HEAD', url: `/actuator/${id}` });
        assert.equal(response.statusCode, status, `${id} ${JSON.stringify(changes)}`);
        assert.equal(id in _links, status === 200, `link of ${id}`);
      }
    }
  });
});

describe('masking', () => {
  const secretNames = [
    'management.password',
    'webhook.secret',
    'WEBHOOK_SECRET',
    'GITHUB_TOKEN',
    'apiKey',
    'API_KEY',
    'aws.secretAccessKey',
    'google.credentials',
    'Authorization',
    'SET_COOKIE',
    'SENTRY_DSN',
    'database.url',
    'DATABASE_URL',
    'DATABASE_URL_FILE',
    'databaseUrl',
    'DB_PASS',
    'db.pwd',
    'DB_PWD',
    'PGPASSWORD',
    'npm_config__auth',
    'ConnectionString',
    'passphrase',
  ];
  const plainNames = [
    'host',
    'rest.port',
    'HOME',
    'PATH',
    'PWD',
    'OLDPWD',
    'graphql.path',
    'profiles',
    'log.level',
    'author',
    'keep-alive',
    'passenger',
  ];

  test('names of secrets are known in every style', () => {
    for (const name of secretNames) assert.equal(isSecretName(name), true, name);
    for (const name of plainNames) assert.equal(isSecretName(name), false, name);
  });

  test('the userinfo of URLs is masked, the rest stays', () => {
    for (const [text, expected] of [
      ['postgres://me:pw@db:5432/x', `postgres://${MASK}@db:5432/x`],
      ['https://token@host', `https://${MASK}@host`],
      ['a postgres://u:p@h/d b', `a postgres://${MASK}@h/d b`],
      ['amqp://u:p@h1,amqp://v:q@h2/x', `amqp://${MASK}@h1,amqp://${MASK}@h2/x`],
      ['mongodb://u:p@h1:1,h2:2/x', `mongodb://${MASK}@h1:1,h2:2/x`],
      ['postgres://me:p@w@db/x', `postgres://${MASK}@db/x`],
      ['postgres://me:p/w@db/x', `postgres://${MASK}@db/x`],
      ['postgres://me:p?w#@db', `postgres://${MASK}@db`],
      ['https://u:p@h,postgres://v:p/w@h2', `https://${MASK}@h,postgres://${MASK}@h2`],
      ['https:///u:p@host', `https:///${MASK}@host`],
      ['https:\\\\u:p@host', `https:\\\\${MASK}@host`],
      ['http:u:p@host', `http:${MASK}@host`],
      ['//u:p@host/x', `//${MASK}@host/x`],
      ['https://registry/@scope/package', 'https://registry/@scope/package'],
      ['https://[::1]:80/?mail=a@b', 'https://[::1]:80/?mail=a@b'],
      ['https://host/path', 'https://host/path'],
      ['me@example.com', 'me@example.com'],
      ['sqlite:portico.db', 'sqlite:portico.db'],
      ['', ''],
    ] as const) {
      assert.equal(maskUserinfo(text), expected);
    }
  });

  test('no password of a URL that parses survives', () => {
    const text = fc.string({ unit: 'binary-ascii', minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(fc.constantFrom('postgres', 'https', 'amqp'), text, text, (scheme, user, password) => {
        const url = `${scheme}://${user}:${password}@host.test/path`;
        const parsed = URL.parse(url);
        fc.pre(parsed !== null && parsed.hostname === 'host.test' && parsed.password !== '');
        // The slashes that a parser skips may stay.
        assert.match(maskUserinfo(url), /^\w+:[/\\\t\r\n]+\*{6}@host\.test\/path$/);
      }),
    );
  });

  test('secrets are masked where a text assigns them', () => {
    assert.equal(maskSecrets('host=db password=x y=1'), `host=db password=${MASK} y=1`);
    assert.equal(maskSecrets(`user=a password='x y' b=2`), `user=a password=${MASK} b=2`);
    assert.equal(maskSecrets('https://h/?a=1&access_token=x&b=2'), `https://h/?a=1&access_token=${MASK}&b=2`);
    assert.equal(maskSecrets('--max-old-space-size=4096'), '--max-old-space-size=4096');
  });

  test('a long value does not take long', () => {
    const started = process.threadCpuUsage().user;
    maskSecrets('a'.repeat(1_000_000));
    const seconds = (process.threadCpuUsage().user - started) / 1e6;
    assert.ok(seconds < 5, `${seconds} s: each letter starts the search anew`);
  });

  test('never: every value is masked', () => {
    const show = valueShower('never', { texts: [] });
    for (const value of ['x', 1, true, null, undefined, ['a']]) {
      assert.equal(show('host', { value, secret: false }), MASK);
    }
  });

  test('otherwise values are shown, but no secrets', () => {
    for (const showValues of ['when-authorized', 'always'] as const) {
      const show = valueShower(showValues, { texts: [] });
      const shown = (name: string, value: unknown, secret = false) => show(name, { value, secret });
      assert.equal(shown('rest.port', 8000), 8000);
      assert.equal(shown('flag', false), false);
      assert.equal(shown('host', '127.0.0.1'), '127.0.0.1');
      assert.equal(shown('unset', undefined), null);
      assert.deepEqual(shown('list', ['a', 1, 'http://u:p@h']), ['a', 1, `http://${MASK}@h`]);
      assert.equal(shown('replica', 'postgres://u:p@h/d'), `postgres://${MASK}@h/d`);
      assert.equal(shown('host', 'x', true), MASK);
      assert.equal(shown('webhook.secret', ['a', 'b']), MASK);
      assert.equal(shown('object', { password: 'x' }), '(a value of type object)');
      assert.equal(shown('big', 1n), '(a value of type bigint)');
    }
  });
});

test('the console shows settings, but no other variable and no secret', () => {
  const show = valueShower('settings', { texts: ['canary'] });
  const property = { value: 'seen canary', secret: false };
  assert.equal(show('LOG_LEVEL', property, true), 'seen ******');
  assert.equal(show('EDITOR', property, false), MASK);
  assert.equal(show('LOG_LEVEL', { ...property, secret: true }, true), MASK);
  assert.equal(show('MANAGEMENT_PASSWORD', property, true), MASK);
});
