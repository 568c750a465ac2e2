import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { relationDoors } from '../support/relations/relation-door.ts';
import { LIBRARY, SPECIMENS } from '../support/relations/relations.ts';

const post = (path: string, body: unknown, headers = {}) => ({ method: 'POST', path, body, headers });

for (const [engine, open] of Object.entries(relationDoors)) {
  describe(`batches of writes on ${engine}`, () => {
    test('later writes use what earlier ones gave, in bodies and in paths', async () => {
      await using door = await open([...LIBRARY, SPECIMENS]);
      const batch = await door.send('POST', '/_batch', {
        writes: [
          post('/authors', { name: 'Jane' }),
          post('/books', { title: 'Emma', author_id: { $result: 0, pointer: '/id' } }),
          { method: 'PUT', path: '/loans/{$1/id},ann', body: { until: '2026-01-31T12:00:00Z' } },
          { method: 'PATCH', path: '/books/{$1/id}', body: { pages: { $result: 0, pointer: '/id' } } },
          post('/books?on=author_id,title', {
            author_id: { $result: 0, pointer: '/id' },
            title: { $result: 1, pointer: '/title' },
            price: '1.50',
          }),
          { method: 'DELETE', path: '/loans/{$2/book_id},{$2/reader}' },
          post('/specimens', {
            code: { $result: 0, pointer: '/name' },
            whole: { $result: 4, pointer: '/pages' },
          }),
          post(
            '/specimens',
            { code: 'b', at: { $result: 6, pointer: '/made' } },
            { Prefer: 'return=minimal' },
          ),
        ],
      });
      assert.equal(batch.status, 200, batch.text);
      const { results } = batch.body;
      const book = { id: 1, title: 'Emma', pages: null, price: '9.90', author_id: 1, published: null };
      assert.deepEqual(
        results.slice(0, 6).map(({ status, body }: { status: number; body: unknown }) => [status, body]),
        [
          [201, { id: 1, name: 'Jane', born: null }],
          [201, book],
          [201, { book_id: 1, reader: 'ann', until: '2026-01-31T12:00:00.000Z' }],
          [200, { ...book, pages: 1 }],
          [200, { ...book, pages: 1, price: '1.50' }],
          [204, null],
        ],
      );
      assert.deepEqual(
        [results[1].headers.location, results[6].body.code, results[6].body.whole],
        ['/books/1', 'Jane', 1],
      );
      assert.deepEqual([results[7].status, results[7].body], [201, null]);
      const [first, second] = (await door.get('/specimens')).body;
      assert.equal(second.at, first.made);
      const stored = await door.get('/books/1');
      assert.deepEqual([stored.body.price, stored.headers.get('etag')], ['1.50', results[4].headers.etag]);
      assert.deepEqual((await door.get('/loans')).body, []);
    });

    test('the first refused write undoes all, and is named with its place', async () => {
      await using door = await open([...LIBRARY, SPECIMENS]);
      await door.send('POST', '/authors', [{ name: 'a' }, { name: 'b' }]);
      await door.send('POST', '/books', { title: 't', author_id: 1 });
      const author = post('/authors', { name: 'new' });
      const etag = (await door.get('/authors/2')).headers.get('etag') ?? '';
      for (const [write, status, code, pointers] of [
        [post('/books', { title: 7, author_id: 1 }), 400, 'INVALID_ROW', ['/body/title']],
        [post('/books', { title: 't', author_id: 1 }), 409, 'TAKEN', ['/body/author_id', '/body/title']],
        [post('/books', { title: 'x', author_id: 77 }), 409, 'REFERENCE_MISSING', ['/body/author_id']],
        [{ method: 'DELETE', path: '/authors/1' }, 409, 'REFERENCED', ['']],
        [{ method: 'DELETE', path: '/authors/9' }, 404, 'NOT_FOUND', ['']],
        [{ method: 'PATCH', path: '/authors/x', body: {} }, 404, 'NOT_FOUND', ['']],
        [
          { method: 'PATCH', path: '/books/1', body: { author_id: 78 } },
          409,
          'REFERENCE_MISSING',
          ['/body/author_id'],
        ],
        [
          { method: 'PATCH', path: '/authors/2', headers: { 'If-Match': '"7"' }, body: { name: 'x' } },
          412,
          'PRECONDITION_FAILED',
          [''],
        ],
        [{ method: 'PUT', path: '/loans/77,ann', body: {} }, 409, 'REFERENCE_MISSING', ['/body/book_id']],
        [
          post('/specimens', { code: 'x', whole: { $result: 0, pointer: '/name' } }),
          400,
          'INVALID_ROW',
          ['/body/whole'],
        ],
        [
          post('/specimens', { code: 'x', day: { $result: 0, pointer: '/id' } }),
          400,
          'INVALID_BATCH',
          ['/body/day'],
        ],
        [
          post('/books', { title: 'x', author_id: { $result: 1, pointer: '/id' } }),
          400,
          'INVALID_BATCH',
          ['/body/author_id'],
        ],
        [
          post('/books', { title: 'x', author_id: { $result: 0, pointer: '/idd' } }),
          400,
          'INVALID_BATCH',
          ['/body/author_id'],
        ],
        [post('/bookz', {}), 400, 'INVALID_BATCH', ['/path']],
        [{ method: 'GET', path: '/books/1' }, 400, 'INVALID_BATCH', ['/method']],
        [{ method: 'DELETE', path: '/books?title=t' }, 400, 'INVALID_BATCH', ['/method']],
        [post('/users', { name: 'x', email: 'x@y' }), 400, 'INVALID_BATCH', ['/path']],
        [post('/books?on=title', {}), 400, 'INVALID_PARAMETER', ['/path']],
        [post('/authors', { name: 'x' }, { 'Idempotency-Key': 'k' }), 400, 'INVALID_BATCH', ['/headers']],
      ] as const) {
        const refused = await door.send('POST', '/_batch', { writes: [author, write, author] });
        assert.deepEqual([refused.status, refused.body.code], [status, code], refused.text);
        assert.equal(refused.headers.get('content-type'), 'application/problem+json');
        assert.deepEqual(
          refused.body.errors.map(({ pointer }: { pointer: string }) => pointer),
          pointers.map((each) => `#/writes/1${each}`),
          refused.text,
        );
      }
      assert.equal((await door.get('/authors')).body.length, 2);
      const fine = await door.send('POST', '/_batch', {
        writes: [{ method: 'PATCH', path: '/authors/2', headers: { 'If-Match': etag }, body: { name: 'x' } }],
      });
      assert.equal(fine.status, 200, fine.text);
    });

    test('a write is judged by what the writes before it did', async () => {
      await using door = await open([...LIBRARY, SPECIMENS]);
      await door.send('POST', '/authors', { name: 'a' });
      await door.send('POST', '/books', { title: 't', author_id: 1, pages: 5 });
      const moved = await door.send('POST', '/_batch', {
        writes: [
          { method: 'DELETE', path: '/books/1' },
          post('/books', { title: 't', author_id: 1 }),
          { method: 'PATCH', path: '/books/{$1/id}', body: { title: 'u' } },
          post('/books', { title: 't', author_id: 1 }),
        ],
      });
      assert.equal(moved.status, 200, moved.text);
      const twice = await door.send('POST', '/_batch', {
        writes: [
          post('/authors', { name: 'b' }),
          ...[1, 2].map(() => post('/books', { title: 'z', author_id: { $result: 0, pointer: '/id' } })),
        ],
      });
      assert.deepEqual([twice.status, twice.body.code], [409, 'TAKEN'], twice.text);
      assert.deepEqual(
        twice.body.errors.map(({ pointer }: { pointer: string }) => pointer),
        ['#/writes/2/body/author_id', '#/writes/2/body/title'],
      );
      const unfit = await door.send('POST', '/_batch', {
        writes: [
          { method: 'PATCH', path: '/books/2', body: {} },
          post('/books', { title: 'y', author_id: { $result: 0, pointer: '/pages' } }),
        ],
      });
      assert.deepEqual([unfit.status, unfit.body.code], [400, 'INVALID_ROW'], unfit.text);
      assert.equal(unfit.body.errors[0].pointer, '#/writes/1/body');
    });

    test('a batch takes effect once with an Idempotency-Key, and keeps its results', async () => {
      await using door = await open(LIBRARY);
      const writes = [
        post('/authors', { name: 'a' }),
        post('/books', { title: 't', author_id: { $result: 0, pointer: '/id' } }),
      ];
      const key = { 'idempotency-key': 'k' };
      const first = await door.send('POST', '/_batch', { writes }, key);
      const again = await door.send('POST', '/_batch', { writes }, key);
      assert.deepEqual([first.status, again.status, again.text], [200, 200, first.text]);
      const other = await door.send('POST', '/_batch', { writes: writes.slice(0, 1) }, key);
      assert.deepEqual([other.status, other.body.code], [422, 'IDEMPOTENCY_KEY_REUSED']);
      const refused = await door.send(
        'POST',
        '/_batch',
        { writes: [...writes, { method: 'DELETE', path: '/books/7' }] },
        { 'idempotency-key': 'l' },
      );
      assert.deepEqual([refused.status, refused.body.errors[0].pointer], [404, '#/writes/2']);
      assert.equal((await door.get('/books')).body.length, 1);
    });

    test('a batch has limits', async () => {
      await using door = await open(LIBRARY);
      const many = await door.send('POST', '/_batch', {
        writes: Array.from({ length: 101 }, () => post('/authors', { name: 'x' })),
      });
      assert.deepEqual([many.status, many.body.code], [400, 'LIMIT_EXCEEDED']);
      const full = await door.send('POST', '/_batch', {
        writes: Array.from({ length: 100 }, () => post('/authors', { name: 'x' })),
      });
      assert.deepEqual([full.status, full.body.results.length], [200, 100], full.text.slice(0, 300));
      const empty = await door.send('POST', '/_batch', { writes: [] });
      assert.equal(empty.text, '{"results":[]}');
      for (const body of [[], { write: [] }, { writes: {} }, { writes: [], more: 1 }, 'null']) {
        const wrong = await door.send('POST', '/_batch', body);
        assert.deepEqual([wrong.status, wrong.body.code], [400, 'INVALID_BATCH']);
      }
      const get = await door.get('/_batch');
      assert.deepEqual([get.status, get.headers.get('allow')], [405, 'POST, OPTIONS']);
    });

    test('each write needs the scope of its relation, and is of its caller', async () => {
      const declared = LIBRARY.map((each) => ({
        ...each,
        columns: each.columns.map((column) =>
          column.name === 'name' ? { ...column, default: { kind: 'caller' } as const } : column,
        ),
      }));
      const secret = 'a-secret-of-more-than-thirty-two-characters';
      const scopes = ['authors:write', 'authors:read', 'books:write'];
      await using door = await open(declared, {
        api: { required: 'all', scopes, tokens: { librarian: { secret, scopes } } },
      });
      const authorization = `Bearer ${secret}`;
      const anonymous = await door.send('POST', '/_batch', { writes: [post('/authors', {})] });
      assert.deepEqual([anonymous.status, anonymous.body.code], [401, 'UNAUTHORIZED']);
      const loan = { method: 'PUT', path: '/loans/1,ann', body: {} };
      const lacks = await door.send(
        'POST',
        '/_batch',
        { writes: [post('/authors', {}), loan] },
        { authorization },
      );
      assert.deepEqual([lacks.status, lacks.body.code], [403, 'LACKS_SCOPE']);
      assert.equal(lacks.body.errors[0].pointer, '#/writes/1');
      const book = post('/books', { title: 't', author_id: { $result: 0, pointer: '/id' } });
      const done = await door.send(
        'POST',
        '/_batch',
        { writes: [post('/authors', {}), book] },
        { authorization },
      );
      assert.deepEqual(
        done.body.results.map(({ body }: { body: unknown }) => body),
        [{ id: 1, name: 'librarian', born: null }, null],
        'a caller who may not read books sees none',
      );
      const single = await door.send('POST', '/authors', {}, { authorization });
      const upsert = await door.send('POST', '/authors?on=id', { born: null }, { authorization });
      assert.deepEqual([single.body.name, upsert.status], ['librarian', 400]);
      assert.equal((await door.get('/authors/2', { authorization })).body.name, 'librarian');
      const array = await door.send('POST', '/authors', [{}, { name: 'x' }], { authorization });
      assert.deepEqual(
        array.body.map(({ name }: { name: string }) => name),
        ['librarian', 'x'],
      );
      const filtered = await door.send('DELETE', '/books?title=t', undefined, {
        authorization,
        prefer: 'max-affected=1',
      });
      assert.deepEqual(
        [filtered.status, filtered.body.code],
        [403, 'LACKS_SCOPE'],
        'it would tell what is there',
      );
    });
  });
}

test('without a declaration there is no /_batch', async () => {
  for (const open of Object.values(relationDoors)) {
    await using door = await open([]);
    const found = await door.send('POST', '/_batch', { writes: [] });
    assert.deepEqual([found.status, found.body], [404, { status: 'error', message: 'Endpoint not found' }]);
  }
});
