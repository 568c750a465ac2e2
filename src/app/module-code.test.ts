import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CodeKey } from '../config/options/options.ts';
import { expectedPassword } from '../core/passwords.ts';
import { readModuleCode } from './load-config.ts';

function read(code: Partial<Record<CodeKey, unknown>>) {
  const problems: string[] = [];
  const entries = Object.entries(code) as [CodeKey, unknown][];
  return { ...readModuleCode(new Map(entries), 'portico.config.ts', problems), problems };
}

test('code is read as it is given', async () => {
  const disk = () => 0;
  const paid = () => undefined;
  const user = { user: 'ops', password: 'p', roles: ['ADMIN'] };
  const { healthChecks, endpoints, users, handlers, problems } = read({
    'management.healthChecks': { disk },
    'management.endpoints': [{ id: 'git-state', read: async () => 'clean' }],
    'management.users': [user],
    'webhook.handlers': { 'invoice.paid': paid, constructor: paid },
  });
  assert.deepEqual(problems, []);
  assert.equal(healthChecks.get('disk')?.check, disk);
  assert.equal(await endpoints[0]?.read?.({ path: {}, query: {} }), 'clean');
  assert.deepEqual(users, [user]);
  assert.deepEqual(
    [...handlers],
    [
      ['invoice.paid', { handler: paid }],
      ['constructor', { handler: paid }],
    ],
  );
  assert.equal(handlers.get('toString'), undefined);
});

test('nothing given is nothing', () => {
  assert.deepEqual(read({}), {
    healthChecks: new Map(),
    healthGroups: new Map(),
    endpoints: [],
    users: [],
    handlers: new Map(),
    apiTokens: undefined,
    sources: undefined,
    forward: undefined,
    alerts: undefined,
    schedules: undefined,
    sending: undefined,
    graphql: { typeDefs: undefined, resolvers: undefined, schema: undefined, context: undefined },
    setups: {},
    problems: [],
  });
});

test('what is wrong is listed by its path', () => {
  const { problems } = read({
    'management.healthChecks': { disk: 1, 'a/b': () => 0, 'in valid': 'x', skipped: undefined },
    'management.endpoints': [null, { id: 'Git', read: 'x' }, { id: 'ok', read: () => '', wirte: 1 }, {}],
    'management.users': [
      { user: 'a:b', password: '', roles: 'ADMIN' },
      { user: 'a', pasword: 'x', roles: [''] },
    ],
    'webhook.handlers': { ping: {} },
  });
  const where = 'portico.config.ts: management';
  const id = 'must begin with a lower-case letter and have only letters, digits, "." and "-"';
  assert.deepEqual(problems, [
    `${where}.healthChecks.disk must be a function, or an object with a function as its "check"`,
    `${where}.healthChecks["a/b"] must have a name of letters, digits, ".", "_" and "-"`,
    `${where}.healthChecks["in valid"] must be a function, or an object with a function as its "check"`,
    `${where}.healthChecks["in valid"] must have a name of letters, digits, ".", "_" and "-"`,
    `${where}.endpoints[0] must be an object with id, path, query, read, write, delete`,
    `${where}.endpoints[1].id ${id}`,
    `${where}.endpoints[1].read must be a function`,
    `${where}.endpoints[2] has an unknown key "wirte"; did you mean write?`,
    `${where}.endpoints[3].id ${id}`,
    `${where}.endpoints[3] must have at least one of read, write, delete`,
    `${where}.users[0].user must be a text without ":" and control characters, and not empty`,
    `${where}.users[0].password must be ${expectedPassword}`,
    `${where}.users[0].roles must be an array of role names`,
    `${where}.users[1] has an unknown key "pasword"; did you mean password?`,
    `${where}.users[1].password must be ${expectedPassword}`,
    `${where}.users[1].roles must be an array of role names`,
    'portico.config.ts: webhook.handlers.ping.handler must be a function',
  ]);
});

test('the containers must be of their kind', () => {
  const { problems } = read({
    'management.healthChecks': [],
    'management.endpoints': {},
    'management.users': 'root',
    'webhook.handlers': () => undefined,
  });
  assert.deepEqual(problems, [
    'portico.config.ts: management.healthChecks must be an object of checks by name',
    'portico.config.ts: management.endpoints must be an array',
    'portico.config.ts: management.users must be an array',
    'portico.config.ts: webhook.handlers must be an object of functions',
  ]);
});

test('an endpoint id is free when no other one agrees with it but for case, "-" and "."', () => {
  const endpoint = (id: string) => ({ id, read: () => id });
  const { endpoints, problems } = read({
    'management.endpoints': ['git-state', 'gitState', 'git.other', 'h-ealth', 'eNV', 'envs'].map(endpoint),
  });
  const where = 'portico.config.ts: management.endpoints';
  assert.deepEqual(problems, [
    `${where}[1].id "gitState" names the same endpoint as ${where}[0].id; rename it`,
    `${where}[3].id "h-ealth" names the same endpoint as the built-in health; rename it`,
    `${where}[4].id "eNV" names the same endpoint as the built-in env; rename it`,
  ]);
  assert.ok(endpoints.some(({ id }) => id === 'envs'));
});

test('a user has one entry', () => {
  const { problems } = read({
    'management.users': [
      { user: 'a', password: 'x', roles: [] },
      { user: 'a', password: 'y', roles: ['b'] },
      { user: 'b', password: 'z', roles: 'c' },
      { user: 'b', password: 'z', roles: ['c'] },
    ],
  });
  assert.deepEqual(problems, [
    'portico.config.ts: management.users[2].roles must be an array of role names',
    'portico.config.ts: management.users[1].user is a duplicate; give every user one entry with all roles',
    'portico.config.ts: management.users[3].user is a duplicate; give every user one entry with all roles',
  ]);
});

test('no problem shows what stands in place of a password', () => {
  for (const password of ['hunter2\n', ['hunter2'], { hunter2: 1 }, { text: 'hunter2' }]) {
    const { problems } = read({ 'management.users': [{ user: 'a', password, roles: [] }] });
    assert.deepEqual(problems, [
      `portico.config.ts: management.users[0].password must be ${expectedPassword}`,
    ]);
  }
});

test('inherited fields and holes do not count', () => {
  const { problems } = read({
    'management.endpoints': [Object.create({ id: 'a', read: () => 'x' })],
    'management.users': new Array(1),
    'webhook.handlers': Object.create({ ping: 1 }),
  });
  assert.equal(problems.length, 3);
});
