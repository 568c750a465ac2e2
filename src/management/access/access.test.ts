import assert from 'node:assert/strict';
import { test } from 'node:test';
import { managementApp } from '../../../test/support/management-app.ts';
import { type Access, accessRules } from './access.ts';

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
  const open = (...ids: readonly string[]) => new Map<string, Access>(ids.map((id) => [id, 'unrestricted']));
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
