import assert from 'node:assert/strict';
import { test } from 'node:test';
import { flagOf, formatDefault } from './option.ts';
import {
  codeKeys,
  defaultsOf,
  doors,
  isSettingKey,
  moduleOption,
  optionKeys,
  optionOf,
  type Settings,
  settingKeys,
} from './options.ts';

/** True where both types are the same. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

test('settings have the types of their options', () => {
  const same: [
    Same<Settings['rest.port'], number | `unix:${string}`>,
    Same<Settings['graphql.users'], 'memory' | 'database'>,
    Same<Settings['interfaces'], readonly ('graphql' | 'rest' | 'management' | 'webhook')[]>,
    Same<Settings['webhook.secret'], readonly string[] | undefined>,
    Same<Settings['management.user'], string | undefined>,
  ] = [true, true, true, true, true];
  assert.equal(same.length, 5);
});

test('the keys, variables and defaults that users rely on stand', () => {
  const documented = optionKeys.map((key) => `${key} ${optionOf(key).env} ${formatDefault(optionOf(key))}`);
  const promised = [
    'host HOST 127.0.0.1',
    'interfaces INTERFACES graphql,rest,management,webhook',
    'database.url DATABASE_URL sqlite:portico.db',
    'graphql.port GRAPHQL_PORT 4000',
    'graphql.path GRAPHQL_PATH /graphql',
    'graphql.users GRAPHQL_USERS memory',
    'rest.port REST_PORT 8000',
    'management.port MANAGEMENT_PORT 8080',
    'management.basePath MANAGEMENT_BASE_PATH /actuator',
    'management.include MANAGEMENT_INCLUDE health,info,metrics,env',
    'management.exclude MANAGEMENT_EXCLUDE none',
    'management.user MANAGEMENT_USER unset: not secured',
    'management.password MANAGEMENT_PASSWORD unset: not secured',
    'management.role MANAGEMENT_ROLE unset: any user may',
    'management.showValues MANAGEMENT_SHOW_VALUES never',
    'webhook.port PORT 3000',
    'webhook.secret WEBHOOK_SECRET unset: not secured',
    'log.level LOG_LEVEL info',
    'profiles PROFILES none',
  ];
  assert.deepEqual(
    documented.filter((line) => promised.includes(line)),
    promised,
  );
});

test('no two options share a variable or a flag, nor the ones of the module', () => {
  const variables = [moduleOption.env, ...optionKeys.map((key) => optionOf(key).env)];
  const files = optionKeys.filter((key) => optionOf(key).secret).map((key) => `${optionOf(key).env}_FILE`);
  const flags: string[] = [moduleOption.flag, ...optionKeys.map(flagOf)];
  assert.equal(new Set([...variables, ...files]).size, variables.length + files.length);
  assert.equal(new Set(flags).size, flags.length);
});

test('every default is a value that its own option accepts, from text and from the module', () => {
  for (const key of settingKeys) {
    const option = optionOf(key);
    if (option.default === undefined) continue;
    const text = Array.isArray(option.default) ? option.default.join(',') : String(option.default);
    assert.deepEqual(option.kind.fromText(text), option.default, key);
    assert.deepEqual(option.kind.fromValue(option.default), option.default, key);
  }
});

test('the secrets are the ones that can hold a password', () => {
  const secrets = optionKeys.filter((key) => optionOf(key).secret);
  assert.deepEqual(secrets, [
    'database.url',
    'database.readUrl',
    'management.password',
    'management.springBootAdmin.url',
    'management.springBootAdmin.password',
    'webhook.secret',
  ]);
});

test('flags follow the keys', () => {
  assert.equal(flagOf('rest.port'), '--rest-port');
  assert.equal(flagOf('management.basePath'), '--management-base-path');
  assert.equal(flagOf('host'), '--host');
});

test('flags and variables are few', () => {
  assert.ok(optionKeys.length <= 81, `${optionKeys.length} options`);
});

test('ten options are essential', () => {
  assert.equal(optionKeys.filter((key) => optionOf(key).essential).length, 10);
});

test('each section belongs to one group, that of its door', () => {
  const groupOf = new Map<string, string>();
  for (const key of [...settingKeys, ...codeKeys.keys()]) {
    const [section = ''] = key.replace(/^limits\./, '').split('.');
    const { group } = isSettingKey(key) ? optionOf(key) : (codeKeys.get(key) ?? { group: '' });
    assert.equal(groupOf.get(section) ?? group, group, key);
    groupOf.set(section, group);
  }
  for (const door of doors) assert.equal(groupOf.get(door), door);
});

test('a section has the limits beside its other settings', () => {
  const { path, maxTokens, cors } = defaultsOf('graphql');
  assert.deepEqual(
    { path, maxTokens, cors },
    {
      path: '/graphql',
      maxTokens: 1_000,
      cors: { origins: [], credentials: false, maxAge: 600 },
    },
  );
  assert.deepEqual(defaultsOf('graphql.cors'), cors);
});

test('inherited names are no keys', () => {
  assert.equal(isSettingKey('rest.port'), true);
  for (const key of ['constructor', '__proto__', 'toString', 'rest']) assert.equal(isSettingKey(key), false);
});

/** What each option takes and refuses as text. */
const texts: Readonly<Record<string, { readonly good: readonly string[]; readonly bad: readonly string[] }>> =
  {
    host: {
      good: ['0.0.0.0', 'localhost', 'my-host.example.org', '::', '::1', 'fe80::1%eth0', '::ffff:127.0.0.1'],
      bad: ['[::1]', 'http://localhost', 'localhost:80', 'a b', ' a', 'a/b'],
    },
    interfaces: {
      good: ['rest', 'webhook, graphql', 'graphql,rest,management,webhook'],
      bad: ['rst', 'rest,', 'rest,rest', 'REST', ',', 'all'],
    },
    'database.url': {
      good: [
        'sqlite:x.db',
        'sqlite::memory:',
        'sqlite:/a b/c.db',
        'postgres://u:p@h/d',
        'postgresql:///d?host=/run',
      ],
      bad: [
        'sqlite:',
        'sqlite: ',
        'portico.db',
        'mysql://u:p@h/d',
        'postgres:',
        'postgres://',
        'postgres://h/a b',
      ],
    },
    'rest.port': {
      good: ['0', '1', '65535'],
      bad: ['65536', '-1', '080', '1.5', '1e3', '0x10', ' 80', 'http', '+1', '-0', '99999999999999999999'],
    },
    'graphql.path': {
      good: ['/graphql', '/a/b', '/v1.0/graphql', '/.well-known/g', '/~x', '/a-b_c'],
      bad: [
        'graphql',
        '/',
        '/graphql/',
        '//',
        '/a//b',
        '/a?b',
        '/a#b',
        '/a b',
        '/a/../b',
        '/..',
        '/a..b',
        '/./a',
        '/a/.',
      ],
    },
    'management.basePath': {
      good: ['/', '/actuator', '/ops/actuator'],
      bad: ['actuator', '/actuator/', '//', '/:id', '/*', '/a%2fb', '/ä', '/..', '/a\n'],
    },
    'graphql.users': { good: ['memory', 'database'], bad: ['Memory', 'none', 'toString'] },
    'management.include': {
      good: ['', '*', 'health', 'health, my-own.Thing', 'INFO'],
      bad: ['health,', 'a b', '1', 'he*'],
    },
    'management.user': { good: ['admin', 'Jürgen Müller'], bad: ['a:b', 'a\nb', 'a\u0000'] },
    'management.password': { good: ['p', ' p ', 'a:b,c', 'ünï'], bad: ['a\nb', 'a\u007f'] },
    'webhook.secret': { good: ['a', 'a,b', 'a , b', 'a b'], bad: [',', 'a,', 'a,,b', 'a\nb'] },
    'log.level': { good: ['fatal', 'trace', 'silent'], bad: ['INFO', 'verbose', '30'] },
    profiles: { good: ['', 'prod', 'prod, blue'], bad: ['a,', 'a\nb'] },
    'shutdown.preStopDelay': { good: ['0', '300', '300000'], bad: ['-1', '300001', '1s', '0.5'] },
  };

for (const [key, { good, bad }] of Object.entries(texts)) {
  test(`${key} takes what it should and nothing else`, () => {
    assert.ok(isSettingKey(key));
    const { kind } = optionOf(key);
    for (const text of good) assert.notEqual(kind.fromText(text), undefined, JSON.stringify(text));
    for (const text of bad) assert.equal(kind.fromText(text), undefined, JSON.stringify(text));
  });
}

test('values of the wrong type are refused', () => {
  const wrong = [null, true, {}, [], [1], () => 1, Symbol('x'), 1n, Number.NaN, new Date()];
  for (const key of settingKeys) {
    const { kind } = optionOf(key);
    for (const value of wrong) {
      const empty = Array.isArray(value) && value.length === 0 && kind.fromText('') !== undefined;
      const yes = value === true && kind.placeholder === 'true|false';
      if (!empty && !yes) assert.equal(kind.fromValue(value), undefined, `${key} ${String(value)}`);
    }
  }
  assert.equal(optionOf('rest.port').kind.fromValue('9000'), undefined);
  assert.equal(optionOf('host').kind.fromValue(1), undefined);
  assert.equal(optionOf('profiles').kind.fromValue(new Array(2)), undefined);
  assert.ok(Object.is(optionOf('rest.port').kind.fromValue(-0), 0));
});

test('a list of the module is copied, and a text with commas is one too', () => {
  const given = ['rest', 'graphql'];
  const read = optionOf('interfaces').kind.fromValue(given);
  assert.deepEqual(read, given);
  assert.notEqual(read, given);
  assert.deepEqual(optionOf('interfaces').kind.fromValue('rest, graphql'), given);
  assert.deepEqual(optionOf('webhook.secret').kind.fromValue(['a,b']), ['a,b']);
});
