import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { importTo, linesOf, restDoors } from './support/rest-door.ts';

const FORMATS = {
  NDJSON: [
    { 'content-type': 'application/x-ndjson' },
    '{"name":"a","email":"a@x"}\n{"name":"b"}\n{"name":"c","email":"c@x"}',
    [1, 2, 3],
  ],
  CSV: [{ 'content-type': 'text/csv; charset=utf-8' }, 'email,name\r\na@x,a\r\n,b\r\nc@x,c\r\n', [2, 3, 4]],
  array: [
    { 'content-type': 'application/json', prefer: 'transaction=line' },
    '[{"name":"a","email":"a@x"},{"name":"b"},{"name":"c","email":"c@x"}]',
    [1, 2, 3],
  ],
} as const;

for (const [engine, open] of Object.entries(restDoors)) {
  describe(`imports on ${engine}`, () => {
    for (const [format, [headers, body, lines]] of Object.entries(FORMATS)) {
      test(`${format}: each line is stored or refused alone, in order, and reported`, async () => {
        await using door = await open();
        const reply = await door.send('POST', '/users', { headers, body });
        assert.equal(reply.status, 200);
        assert.equal(reply.headers.get('content-type'), 'application/x-ndjson');
        assert.equal(reply.headers.get('preference-applied'), 'transaction=line');
        const [first, second, third, end, ...rest] = linesOf(reply.text);
        assert.deepEqual(first, { line: lines[0], id: 1 });
        assert.deepEqual([second?.line, second?.code], [lines[1], 'INVALID_USER']);
        assert.match(String(second?.reason), /^"email" is (?:missing|empty)$/);
        assert.deepEqual(third, { line: lines[2], id: 2 });
        assert.deepEqual([end, ...rest], [{ created: 2, refused: 1 }]);
        const users = [
          { id: 1, name: 'a', email: 'a@x' },
          { id: 2, name: 'c', email: 'c@x' },
        ];
        assert.deepEqual((await door.get('/users')).body.data, users);
        assert.match((await door.get('/users/2')).headers.get('etag') ?? '', /^"\d{13}"$/);
      });

      test(`${format}: in one transaction a refused line keeps all from being stored`, async () => {
        await using door = await open();
        const whole = { ...headers, prefer: 'transaction=all' };
        const refused = await door.send('POST', '/users', { headers: whole, body });
        assert.deepEqual([refused.status, refused.headers.get('x-error-code')], [400, 'INVALID_USER']);
        assert.deepEqual(
          linesOf(refused.text).map(({ line, created }) => line ?? created),
          [lines[1], 0],
        );
        assert.deepEqual((await door.get('/users')).body.data, []);
        const good = body.replace('{"name":"b"}', '{"name":"b","email":"b@x"}').replace('\n,b', '\nb@x,b');
        const stored = await door.send('POST', '/users', { headers: whole, body: good });
        assert.deepEqual(linesOf(stored.text), [
          ...lines.map((line, i) => ({ line, id: i + 1 })),
          { created: 3, refused: 0 },
        ]);
      });
    }

    test('many users come in and go out, in every format, as they are', async () => {
      await using door = await open();
      const users = Array.from({ length: 5_500 }, (_, i) => ({
        name: `=cmd|'${i}'!"A1",\r\n é😀`,
        email: `u${i}@x`,
      }));
      const ndjson = users.map((user) => `${JSON.stringify(user)}\n`).join('');
      const headers = { 'content-type': 'application/x-ndjson', prefer: 'return=minimal' };
      const first = await importTo(door.url, headers, ndjson);
      assert.deepEqual(linesOf(first), [{ created: 5_500, refused: 0 }]);
      const lines = await door.get('/users', { accept: 'application/x-ndjson' });
      assert.equal(lines.headers.get('content-type'), 'application/x-ndjson');
      assert.equal(lines.headers.get('vary'), 'accept');
      assert.deepEqual(
        linesOf(lines.text),
        users.map((user, i) => ({ id: i + 1, ...user })),
      );
      const csv = await door.get('/users', { accept: 'text/csv, application/json;q=0.5' });
      assert.equal(csv.headers.get('content-type'), 'text/csv; charset=utf-8');
      assert.match(csv.text, /^id,name,email\r\n1,"=cmd\|'0'!""A1"",\r\n é😀","u0@x"\r\n/);
      const again = await importTo(
        door.url,
        { 'content-type': 'text/csv', prefer: 'return=minimal' },
        csv.text,
      );
      assert.deepEqual(linesOf(again), [{ created: 5_500, refused: 0 }]);
      const all = (await door.get('/users')).body.data as readonly { readonly name: string }[];
      assert.deepEqual(
        all.map(({ name }) => name),
        [...users, ...users].map(({ name }) => name),
      );
      // An unchanged list is not sent again; one in another format is another one.
      const etag = csv.headers.get('etag') ?? '';
      const now = await door.get('/users', { accept: 'text/csv' });
      assert.notEqual(now.headers.get('etag'), etag);
      const unchanged = { accept: 'text/csv', 'if-none-match': now.headers.get('etag') ?? '' };
      assert.equal((await door.get('/users', unchanged)).status, 304);
      assert.equal((await door.get('/users', { ...unchanged, accept: 'application/x-ndjson' })).status, 200);
      const head = await door.send('HEAD', '/users', { headers: { accept: 'text/csv' } });
      assert.equal(head.headers.get('etag'), now.headers.get('etag'));
      assert.equal((await door.get('/users?limit=2', { accept: 'text/csv' })).status, 400);
    });

    test('where emails are unique, a line with one that is taken is refused, within an import too', async () => {
      await using door = await open({ USERS_UNIQUE_EMAIL: 'true' });
      await door.create('Ada', 'ada@x');
      const body = ['b@x', 'ADA@x', 'B@X', 'c@x']
        .map((email) => JSON.stringify({ name: 'n', email }))
        .join('\n');
      const headers = { 'content-type': 'application/x-ndjson' };
      const wholly = { ...headers, prefer: 'transaction=all' };
      const refused = await door.send('POST', '/users', { headers: wholly, body });
      assert.deepEqual([refused.status, refused.headers.get('x-error-code')], [409, 'EMAIL_TAKEN']);
      assert.deepEqual(
        linesOf(refused.text).map(({ line, code }) => [line, code]),
        [
          [2, 'EMAIL_TAKEN'],
          [undefined, undefined],
        ],
      );
      const twice = body.replace('ADA@x', 'd@x');
      const repeated = await door.send('POST', '/users', { headers: wholly, body: twice });
      assert.deepEqual(linesOf(repeated.text)[0]?.line, 3);
      assert.equal(((await door.get('/users')).body.data as readonly unknown[]).length, 1);
      const reply = await door.send('POST', '/users', { headers, body });
      assert.deepEqual(
        linesOf(reply.text).map(({ line, code }) => [line, code]),
        [
          [1, undefined],
          [2, 'EMAIL_TAKEN'],
          [3, 'EMAIL_TAKEN'],
          [4, undefined],
          [undefined, undefined],
        ],
      );
    });

    test('an import with a key goes on where it was stored', async () => {
      await using door = await open();
      const lines = Array.from({ length: 30 }, (_, i) => `{"name":"n${i}","email":"e@x"}\n`);
      const headers = { 'content-type': 'application/x-ndjson', 'idempotency-key': 'first' };
      const part = await door.send('POST', '/users', { headers, body: lines.slice(0, 12).join('') });
      assert.deepEqual(linesOf(part.text).at(-1), { created: 12, refused: 0 });
      const rest = await door.send('POST', '/users', { headers, body: lines.join('') });
      assert.deepEqual(linesOf(rest.text)[0], { line: 13, id: 13 });
      assert.deepEqual(linesOf(rest.text).at(-1), { created: 18, refused: 0, skipped: 12 });
      const whole = { ...headers, prefer: 'transaction=all' };
      const none = await door.send('POST', '/users', { headers: whole, body: lines.join('') });
      assert.deepEqual(linesOf(none.text), [{ created: 0, refused: 0, skipped: 30 }]);
      const names = (await door.get('/users')).body.data as readonly { readonly name: string }[];
      assert.deepEqual(
        names.map(({ name }) => name),
        lines.map((_, i) => `n${i}`),
      );
    });
  });
}
