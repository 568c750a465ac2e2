import assert from 'node:assert/strict';
import { test } from 'node:test';
import { crossCheck } from './cross-checks.ts';
import { type OptionKey, optionKeys, optionOf, type Settings } from './options/options.ts';

const defaults = Object.fromEntries(optionKeys.map((key) => [key, optionOf(key).default])) as Settings;
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
      `${key} names helth, which is no endpoint; did you mean health?`,
      `${key} names beans, which is no endpoint`,
    ]);
    assert.deepEqual(check({ [key]: ['greeting'] }, { endpoints: [{ id: 'greeting' }] }), []);
    assert.deepEqual(check({ [key]: ['greting'] }, { endpoints: [{ id: 'greeting' }] }), [
      `${key} names greting, which is no endpoint; did you mean greeting?`,
    ]);
    assert.deepEqual(check({ [key]: ['helth'] }, { broken: [key] }), []);
  });
}

test('management.endpointAccess names every endpoint once, and none that is not there', () => {
  const access = (...entries: string[]) => check({ 'management.endpointAccess': entries });
  assert.deepEqual(access('shutdwon=unrestricted', 'loggers=none', 'Log-gers=read-only'), [
    'management.endpointAccess names shutdwon, which is no endpoint; did you mean shutdown?',
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

test('partitions are for PostgreSQL only', () => {
  const on = (url: string) => check({ 'webhook.partitions': true, 'database.url': url });
  assert.match(on('sqlite:x').join(), /webhook\.partitions is set .* SQLite has no partitions/);
  assert.deepEqual(on('postgres://h/d'), []);
});
