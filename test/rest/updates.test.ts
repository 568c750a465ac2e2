import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { loadConfig } from '../../src/app/load-config.ts';
import { createService } from '../../src/app/service.ts';
import { captureLog } from '../support/log-capture.ts';
import { idsOf, restDoors } from './support/rest-door.ts';

const PATCH = { 'content-type': 'application/merge-patch+json; charset=utf-8' };

for (const [engine, open] of Object.entries(restDoors)) {
  describe(`updates on ${engine}`, () => {
    test('a merge patch changes what it names and nothing else', async () => {
      await using door = await open();
      const id = await door.create('Ada', 'ada@example.com');
      const patch = (body: unknown, more = {}) =>
        door.send('PUT', `/update/${id}`, { headers: { ...PATCH, ...more }, body });
      const named = await patch({ name: 'Grace', age: 7 });
      assert.equal(named.text, '{"status":"success","message":"User updated successfully"}');
      const read = await door.get(`/users/${id}`);
      assert.deepEqual(read.body.data, { id, name: 'Grace', email: 'ada@example.com' });
      assert.equal(read.headers.get('etag'), named.headers.get('etag'));
      const shown = await patch({ email: 'g@x' }, { prefer: 'return=representation' });
      assert.deepEqual(shown.body.data, { id, name: 'Grace', email: 'g@x' });
      for (const body of [
        { name: null },
        { name: '' },
        { email: 'x' },
        { name: 7 },
        [],
        'null',
        '"a"',
        '{',
      ]) {
        assert.equal((await patch(body)).status, 400, JSON.stringify(body));
      }
      assert.equal((await patch({ name: 'late' }, { 'if-match': '"1"' })).status, 412);
      assert.deepEqual((await door.get(`/users/${id}`)).body.data, { id, name: 'Grace', email: 'g@x' });
      // By any other type it is a whole user.
      assert.equal((await door.send('PUT', `/update/${id}`, { body: { name: 'x' } })).status, 400);
      assert.equal(
        (await door.send('PUT', '/update/77', { headers: PATCH, body: { name: 'x' } })).status,
        404,
      );
    });

    test('where emails are unique, a second user with one is refused, in whatever case', async () => {
      await using door = await open({ USERS_UNIQUE_EMAIL: 'true' });
      await door.create('Ada', 'ada@example.com');
      await door.create('Grace', 'grace@example.com');
      const email = 'ADA@Example.COM';
      for (const [method, path, headers, body] of [
        ['POST', '/users', {}, { name: 'Eve', email }],
        ['POST', '/users', { 'idempotency-key': 'k' }, { name: 'Eve', email }],
        ['PUT', '/update/2', {}, { name: 'Grace', email }],
        ['PUT', '/update/2', { 'if-match': '*' }, { name: 'Grace', email }],
        ['PUT', '/update/2', PATCH, { email }],
      ] as const) {
        const refused = await door.send(method, path, { headers, body });
        assert.deepEqual([refused.status, refused.headers.get('x-error-code')], [409, 'EMAIL_TAKEN'], path);
        assert.match(refused.body.message ?? '', /^Failed to (?:create|update) user$/);
      }
      assert.equal((await door.send('PUT', '/update/1', { body: { name: 'Ada', email } })).status, 200);
      // Of many at the same time, in batches with others.
      const replies = await Promise.all(
        Array.from({ length: 40 }, (_, i) =>
          door.send('POST', '/users', { body: { name: `n${i}`, email: `e${i % 10}@x` } }),
        ),
      );
      assert.equal(replies.filter(({ status }) => status === 200).length, 10);
      assert.equal(idsOf(await door.get('/users')).length, 12);
      await door.send('DELETE', '/delete/1');
      assert.equal((await door.send('POST', '/users', { body: { name: 'Eve', email } })).status, 200);
    });

    test('a body may have as many bytes as the limit', async () => {
      await using door = await open({ REST_MAX_BODY_BYTES: '60' });
      const post = (bytes: number) => {
        const body = '{"name":"Ada","email":"ada@example.com"}'.padEnd(bytes);
        return door.send('POST', '/users', { body });
      };
      assert.equal((await post(60)).status, 200);
      assert.equal((await post(61)).status, 413);
    });

    test('a start that makes emails unique names those that are not', async () => {
      await using door = await open();
      for (const [name, email] of [
        ['a', 'A@x'],
        ['b', 'b@x'],
        ['c', 'a@X'],
        ['d', 'B@x'],
        ['e', 'e@x'],
      ] as const) {
        await door.create(name, email);
      }
      const url = door.service.databaseUrl;
      await door.service.current.stop();
      const env = { DATABASE_URL: url, USERS_UNIQUE_EMAIL: 'true', INTERFACES: 'rest', REST_PORT: '0' };
      const config = await loadConfig({ argv: [], env, cwd: door.service.folder });
      const start = () => createService(config, { logStream: captureLog().stream });
      await assert.rejects(
        start,
        /users share an email: a@x \(users 1, 3\), b@x \(users 2, 4\)\. Change or delete/,
      );
    });
  });
}
