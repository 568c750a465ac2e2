import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { restDoors } from './support/rest-door.ts';

const GRACE = { name: 'Grace', email: 'grace@example.com' };

for (const [engine, open] of Object.entries(restDoors)) {
  describe(`conditional requests on ${engine}`, () => {
    test('a user that a client knows already is a 304, until it changes', async () => {
      await using door = await open();
      const id = await door.create('Ada', 'ada@example.com');
      const first = await door.get(`/users/${id}`);
      const etag = first.headers.get('etag') ?? '';
      assert.match(etag, /^"\d{13}"$/);
      for (const tags of [etag, `"x", W/${etag}`, '*']) {
        const known = await door.get(`/users/${id}`, { 'if-none-match': tags });
        assert.deepEqual([known.status, known.text, known.headers.get('etag')], [304, '', etag], tags);
        assert.equal(known.headers.get('content-length'), null);
      }
      for (const tags of ['"x"', etag.slice(0, -1), '']) {
        assert.equal((await door.get(`/users/${id}`, { 'if-none-match': tags })).text, first.text, tags);
      }
      await door.send('PUT', `/update/${id}`, { body: GRACE });
      const changed = await door.get(`/users/${id}`, { 'if-none-match': etag });
      assert.equal(changed.status, 200);
      assert.notEqual(changed.headers.get('etag'), etag);
      const missing = await door.get('/users/77', { 'if-none-match': '*' });
      assert.deepEqual([missing.status, missing.headers.get('etag')], [200, null]);
    });

    test('Last-Modified comes once its second is over, and can be asked with', async () => {
      await using door = await open();
      const id = await door.create('Ada', 'ada@example.com');
      await delay(1_100);
      const modified = (await door.get(`/users/${id}`)).headers.get('last-modified') ?? '';
      const moment = Date.parse(modified);
      assert.ok(Math.abs(moment - Date.now()) < 60_000, modified);
      const status = async (since: number, more = {}) =>
        (await door.get(`/users/${id}`, { 'if-modified-since': new Date(since).toUTCString(), ...more }))
          .status;
      assert.equal(await status(moment), 304);
      assert.equal(await status(moment - 1_000), 200);
      assert.equal(await status(moment, { 'if-none-match': '"x"' }), 200, 'If-None-Match counts alone');
      assert.equal((await door.get('/users', { 'if-modified-since': modified })).status, 304);
      const since = new Date(moment - 1_000).toUTCString();
      const refused = await door.send('PUT', `/update/${id}`, {
        body: GRACE,
        headers: { 'if-unmodified-since': since },
      });
      assert.equal(refused.status, 412);
      const taken = await door.send('PUT', `/update/${id}`, {
        body: GRACE,
        headers: { 'if-unmodified-since': modified },
      });
      assert.equal(taken.status, 200);
    });

    test('a list that a client knows already is a 304 until some user is created, changed or removed', async () => {
      await using door = await open();
      for (let i = 0; i < 3; i++) await door.create(`n${i}`, 'a@b');
      const paths = ['/users', '/users?limit=2', '/users?q=n0'];
      const tags = async () =>
        Promise.all(paths.map(async (path) => (await door.get(path)).headers.get('etag') ?? ''));
      for (const change of [
        () => door.create('new', 'a@b'),
        () => door.send('PUT', '/update/2', { body: GRACE }),
        () => door.send('DELETE', '/delete/3'),
        () => door.service.restart().then(() => door.create('later', 'a@b')),
      ]) {
        const known = await tags();
        for (const [i, path] of paths.entries()) {
          const same = await door.get(path, { 'if-none-match': known[i] ?? '' });
          assert.deepEqual([same.status, same.text], [304, ''], path);
        }
        await change();
        for (const [i, path] of paths.entries()) {
          assert.equal((await door.get(path, { 'if-none-match': known[i] ?? '' })).status, 200, path);
        }
      }
      const known = await tags();
      await door.service.restart();
      assert.deepEqual(await tags(), known, 'a restart changes nothing');
      assert.equal((await door.send('HEAD', '/users')).headers.get('etag'), known[0]);
    });

    test('a write for another version changes nothing', async () => {
      await using door = await open();
      const id = await door.create('Ada', 'ada@example.com');
      const before = await door.get(`/users/${id}`);
      const etag = before.headers.get('etag') ?? '';
      for (const tags of ['"1"', '"x"', `W/${etag}`, '', etag.slice(1)]) {
        for (const [method, path] of [
          ['PUT', `/update/${id}`],
          ['DELETE', `/delete/${id}`],
        ] as const) {
          const refused = await door.send(method, path, {
            headers: { 'if-match': tags },
            ...(method === 'PUT' ? { body: GRACE } : {}),
          });
          assert.equal(refused.status, 412, `${method} ${tags}`);
          assert.equal(refused.headers.get('x-error-code'), 'PRECONDITION_FAILED');
        }
      }
      const after = await door.get(`/users/${id}`);
      assert.deepEqual([after.text, after.headers.get('etag')], [before.text, etag]);
      const put = (tags: string) =>
        door.send('PUT', `/update/${id}`, { headers: { 'if-match': tags }, body: GRACE });
      const taken = await put(`"7", ${etag}`);
      assert.equal(taken.text, '{"status":"success","message":"User updated successfully"}');
      assert.equal((await door.get(`/users/${id}`)).headers.get('etag'), taken.headers.get('etag'));
      assert.equal((await put('*')).status, 200);
      const gone = await door.send('DELETE', '/delete/77', { headers: { 'if-match': '*' } });
      assert.equal(gone.status, 404);
    });

    test('of writes at the same time for one version one is taken', async () => {
      await using door = await open();
      const id = await door.create('Ada', 'ada@example.com');
      const etag = (await door.get(`/users/${id}`)).headers.get('etag') ?? '';
      const writes = Array.from({ length: 12 }, (_, i) =>
        door.send('PUT', `/update/${id}`, {
          headers: { 'if-match': etag },
          body: { ...GRACE, name: `n${i}` },
        }),
      );
      const replies = await Promise.all(writes);
      const taken = replies.findIndex(({ status }) => status === 200);
      assert.deepEqual(
        replies.map(({ status }, i) => (i === taken ? 200 : status)).filter((s) => s !== 412),
        [200],
      );
      assert.match((await door.get(`/users/${id}`)).text, new RegExp(`"n${taken}"`));
    });

    test('where a condition is required, a write without one is refused', async () => {
      await using door = await open({ REST_REQUIRE_IF_MATCH: 'true' });
      const id = await door.create('Ada', 'ada@example.com');
      const bare = await door.send('PUT', `/update/${id}`, { body: GRACE });
      assert.deepEqual([bare.status, bare.headers.get('x-error-code')], [428, 'PRECONDITION_REQUIRED']);
      assert.equal((await door.send('DELETE', `/delete/${id}`)).status, 428);
      assert.match((await door.get(`/users/${id}`)).text, /Ada/);
      const etag = (await door.get(`/users/${id}`)).headers.get('etag') ?? '';
      assert.equal(
        (await door.send('DELETE', `/delete/${id}`, { headers: { 'if-match': etag } })).status,
        200,
      );
    });
  });
}
