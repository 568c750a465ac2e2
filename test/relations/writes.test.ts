import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type RelationDoor, relationDoors } from '../support/relations/relation-door.ts';
import { LIBRARY, SPECIMENS } from '../support/relations/relations.ts';

const pointers = ({
  body,
}: {
  readonly body: { readonly errors: readonly { readonly pointer: string }[] };
}) => body.errors.map(({ pointer }) => pointer);

/** A door with the author 1. */
async function library(door: RelationDoor): Promise<void> {
  const { status, text } = await door.send('POST', '/authors', [{ name: 'Jane' }, { name: 'Emily' }]);
  assert.equal(status, 201, text);
}

const ON = '/books?on=author_id,title';

for (const [engine, open] of Object.entries(relationDoors)) {
  describe(`upserts on ${engine}`, () => {
    test('a row is created, then merged with the columns that came, or left as it is', async () => {
      await using door = await open(LIBRARY);
      await library(door);
      const created = await door.send('POST', ON, { author_id: 1, title: 'Emma', pages: 400, price: '1.00' });
      assert.deepEqual([created.status, created.headers.get('location')], [201, '/books/1'], created.text);
      assert.equal(created.headers.get('preference-applied'), null);
      const merged = await door.send(
        'POST',
        '/books?on=title,author_id',
        { title: 'Emma', author_id: 1, pages: 401 },
        { prefer: 'resolution=merge' },
      );
      assert.deepEqual(
        [merged.status, merged.body, merged.headers.get('preference-applied')],
        [200, { ...created.body, pages: 401 }, 'resolution=merge'],
        'a default does not overwrite what is there',
      );
      const etags = [created, merged].map(({ headers }) => headers.get('etag') ?? '');
      assert.ok((etags[1] ?? '') > (etags[0] ?? ''), String(etags));
      assert.equal((await door.get('/books/1')).headers.get('etag'), etags[1]);
      const ignored = await door.send(
        'POST',
        ON,
        { title: 'Emma', author_id: 1, pages: 7 },
        { prefer: 'resolution=ignore' },
      );
      assert.deepEqual([ignored.status, ignored.text], [200, merged.text]);
      assert.equal(ignored.headers.get('etag'), etags[1], 'nothing was written');
      const loan = await door.send('POST', '/loans?on=book_id,reader', { book_id: 1, reader: 'ann' });
      const again = await door.send('POST', '/loans?on=book_id,reader', {
        book_id: 1,
        reader: 'ann',
        until: '2026-01-31T00:00:00Z',
      });
      assert.deepEqual([loan.status, again.status, again.body.until], [201, 200, '2026-01-31T00:00:00.000Z']);
    });

    test('all rows of an array are upserted or none, in their order', async () => {
      await using door = await open(LIBRARY);
      await library(door);
      await door.send('POST', '/books', [
        { author_id: 1, title: 'a' },
        { author_id: 1, title: 'b', pages: 2 },
      ]);
      const rows = [
        { author_id: 1, title: 'c' },
        { author_id: 1, title: 'b', price: '3.00' },
        { author_id: 1, title: 'a', pages: 1 },
      ];
      const some = await door.send('POST', ON, rows);
      assert.equal(some.status, 201, some.text);
      assert.deepEqual(
        some.body.map(({ title, pages, price }: Record<string, unknown>) => [title, pages, price]),
        [
          ['c', null, '9.90'],
          ['b', 2, '3.00'],
          ['a', 1, '9.90'],
        ],
      );
      assert.equal((await door.send('POST', ON, rows)).status, 200, 'nothing was created');
      const ignored = await door.send(
        'POST',
        ON,
        [
          { author_id: 1, title: 'a', pages: 9 },
          { author_id: 1, title: 'd' },
        ],
        { prefer: 'resolution=ignore' },
      );
      assert.deepEqual(
        [ignored.status, ignored.body.map(({ pages }: Record<string, unknown>) => pages)],
        [201, [1, null]],
      );
      const refused = await door.send('POST', ON, [
        { author_id: 1, title: 'e' },
        { author_id: 77, title: 'f' },
      ]);
      assert.deepEqual(
        [refused.status, refused.body.code, pointers(refused)],
        [409, 'REFERENCE_MISSING', ['#/1/author_id']],
      );
      assert.deepEqual((await door.get('/books?title=e')).body, []);
    });

    test('one request writes a row once, and says which of its rows are the same', async () => {
      await using door = await open([...LIBRARY, SPECIMENS]);
      await library(door);
      const twice = await door.send('POST', ON, [
        { author_id: 1, title: 'a' },
        { author_id: 2, title: 'a' },
        { author_id: 1, title: 'a' },
      ]);
      assert.deepEqual(
        [twice.status, twice.body.code, pointers(twice)],
        [400, 'INVALID_ROW', ['#/0', '#/2']],
      );
      const folded = await door.send('POST', '/specimens?on=code', [{ code: 'One' }, { code: 'oNE' }]);
      assert.deepEqual([folded.status, pointers(folded)], [400, ['#/0', '#/1']]);
      assert.equal((await door.send('POST', '/specimens?on=code', { code: 'One' })).status, 201);
      const other = await door.send('POST', '/specimens?on=code', { code: 'oNE', whole: 5 });
      assert.deepEqual([other.status, other.body.code, other.body.whole], [200, 'One', 5], other.text);
    });

    test('a row with another key is another row', async () => {
      await using door = await open([SPECIMENS]);
      await door.send('POST', '/specimens', { id: 5, code: 'a' });
      const other = await door.send('POST', '/specimens?on=code', { id: 6, code: 'a', whole: 1 });
      assert.deepEqual([other.status, other.body.code, pointers(other)], [409, 'TAKEN', ['#/code']]);
      const same = await door.send('POST', '/specimens?on=code', { id: 5, code: 'a', whole: 1 });
      assert.deepEqual([same.status, same.body.whole], [200, 1], same.text);
      const byKey = await door.send('POST', '/specimens?on=id', { id: 5, code: 'b' });
      assert.deepEqual([byKey.status, byKey.body.code], [200, 'b'], byKey.text);
      const created = await door.send('POST', '/specimens?on=id', { id: 9, code: 'c' });
      assert.equal(created.status, 201, created.text);
      const next = await door.send('POST', '/specimens', { code: 'd' });
      assert.equal(next.body.id, 10, 'numbers go on behind a given one');
      const taken = await door.send('POST', '/specimens?on=id', { id: 9, code: 'B' });
      assert.deepEqual([taken.status, pointers(taken)], [409, ['#/code']]);
      const without = await door.send('POST', '/specimens?on=id', { code: 'e' });
      assert.deepEqual([without.status, pointers(without)], [400, ['#/id']]);
    });

    test('what an upsert cannot do is refused with what to do', async () => {
      await using door = await open(LIBRARY);
      await library(door);
      const row = { author_id: 1, title: 'a' };
      for (const [path, headers, parameter] of [
        ['/books?on=title', {}, 'on'],
        ['/books?om=title', {}, 'om'],
        ['/books?on=author_id,title', { 'if-match': '"1"' }, 'on'],
        ['/books?on=author_id,title', { prefer: 'resolution=replace' }, 'on'],
      ] as const) {
        const refused = await door.send('POST', path, row, headers);
        assert.deepEqual([refused.status, refused.body.code], [400, 'INVALID_PARAMETER'], refused.text);
        assert.equal(refused.body.errors[0].parameter, parameter);
      }
      const lines = await door.send('POST', ON, '{"author_id":1,"title":"a"}\n', {
        'content-type': 'application/x-ndjson',
      });
      assert.deepEqual([lines.status, lines.body.code], [400, 'INVALID_PARAMETER']);
      assert.deepEqual((await door.get('/books')).body, []);
    });

    test('concurrent upserts of one row create it once', async () => {
      await using door = await open(LIBRARY);
      await library(door);
      const replies = await Promise.all(
        Array.from({ length: 20 }, (_, pages) =>
          door.send('POST', ON, { author_id: 1, title: 'a', pages: pages + 1 }),
        ),
      );
      const statuses = replies.map(({ status }) => status).sort();
      assert.deepEqual(statuses, [...Array.from({ length: 19 }, () => 200), 201]);
      const last = await door.get('/books?author_id=1');
      assert.equal(last.body.length, 1);
      const versions = replies.map(({ headers }) => headers.get('etag'));
      assert.equal(new Set(versions).size, 20, 'each has its own version');
    });

    test('arrays and upserts with an Idempotency-Key take effect once and keep their reply', async () => {
      await using door = await open([...LIBRARY, SPECIMENS]);
      await library(door);
      const key = { 'idempotency-key': 'k' };
      const rows = [
        { author_id: 1, title: 'a' },
        { author_id: 2, title: 'b' },
      ];
      const first = await door.send('POST', '/books', rows, key);
      assert.equal(first.status, 201, first.text);
      await door.send('DELETE', '/books/1');
      const again = await door.send('POST', '/books', rows, key);
      assert.deepEqual([again.status, again.text], [201, first.text]);
      assert.equal((await door.get('/books/1')).status, 404);
      const other = await door.send('POST', '/books', rows.slice(1), key);
      assert.deepEqual([other.status, other.body.code], [422, 'IDEMPOTENCY_KEY_REUSED']);
      const asUpsert = await door.send('POST', ON, rows, key);
      assert.deepEqual([asUpsert.status, asUpsert.body.code], [422, 'IDEMPOTENCY_KEY_REUSED']);
      const refused = { 'idempotency-key': 'refused' };
      const missing = [
        { author_id: 1, title: 'x' },
        { author_id: 7, title: 'x' },
      ];
      for (const _ of [1, 2]) {
        const reply = await door.send('POST', '/books', missing, refused);
        assert.deepEqual([reply.status, pointers(reply)], [409, ['#/1/author_id']]);
      }
      const upsert = { 'idempotency-key': 'upsert' };
      const specimen = {
        code: 'x',
        raw: 'AAEC/w==',
        big: '9223372036854775807',
        at: '2026-01-31T12:30:00.123Z',
      };
      const created = await door.send('POST', '/specimens?on=code', specimen, upsert);
      await door.send('PATCH', `/specimens/${created.body.id}`, { flag: true });
      const kept = await door.send('POST', '/specimens?on=code', specimen, upsert);
      assert.deepEqual([created.status, kept.status, kept.text], [201, 201, created.text]);
      assert.equal(kept.headers.get('etag'), created.headers.get('etag'));
      const both = await Promise.all(
        [1, 2, 3, 4].map(() =>
          door.send('POST', '/books', [{ author_id: 1, title: 'z' }], { 'idempotency-key': 'z' }),
        ),
      );
      for (const reply of both)
        assert.ok(reply.status === 201 || reply.body.code === 'IDEMPOTENCY_KEY_IN_USE', reply.text);
      assert.equal((await door.get('/books?title=z')).body.length, 1);
    });
  });

  describe(`deletions by a filter on ${engine}`, () => {
    test('rows that match are removed, with those that go with them', async () => {
      await using door = await open(LIBRARY);
      await library(door);
      const books = ['a', 'b', 'c', 'd'].map((title, i) => ({ author_id: (i % 2) + 1, title, pages: i + 1 }));
      await door.send('POST', '/books', books);
      await door.send('POST', '/loans', [
        { book_id: 1, reader: 'ann' },
        { book_id: 1, reader: 'ben' },
        { book_id: 2, reader: 'ann' },
      ]);
      const removed = await door.send('DELETE', '/books?author.name=Jane&pages:lt=3', undefined, {
        prefer: 'max-affected=1',
      });
      assert.deepEqual(
        [removed.status, removed.text, removed.headers.get('x-total-count')],
        [204, '', '1'],
        'loans are not counted',
      );
      assert.equal(removed.headers.get('preference-applied'), 'max-affected=1');
      assert.deepEqual((await door.get('/books?fields=title')).body, [
        { title: 'b' },
        { title: 'c' },
        { title: 'd' },
      ]);
      assert.deepEqual((await door.get('/loans?fields=book_id')).body, [{ book_id: 2 }]);
      const where = encodeURIComponent('{"or":[{"book_id":2},{"reader":"x"}]}');
      const loans = await door.send('DELETE', `/loans?where=${where}`, undefined, {
        prefer: 'max-affected=10',
      });
      assert.deepEqual([loans.status, loans.headers.get('x-total-count')], [204, '1']);
      const none = await door.send('DELETE', '/loans?reader=x', undefined, { prefer: 'max-affected=0' });
      assert.deepEqual([none.status, none.headers.get('x-total-count')], [204, '0']);
    });

    test('nothing is removed if more rows match, or others refer to one', async () => {
      await using door = await open(LIBRARY);
      await library(door);
      await door.send(
        'POST',
        '/books',
        ['a', 'b', 'c'].map((title) => ({ author_id: 1, title })),
      );
      const many = await door.send('DELETE', '/books?author_id=1', undefined, { prefer: 'max-affected=2' });
      assert.deepEqual([many.status, many.body.code], [400, 'LIMIT_EXCEEDED']);
      assert.match(many.body.detail, /At least 3 rows/);
      assert.equal((await door.get('/books')).body.length, 3);
      const referenced = await door.send('DELETE', '/authors?id:gte=1', undefined, {
        prefer: 'max-affected=9',
      });
      assert.deepEqual([referenced.status, referenced.body.code], [409, 'REFERENCED']);
      assert.match(referenced.body.detail, /rows of books/);
      assert.equal((await door.get('/authors')).body.length, 2);
    });

    test('a deletion says what it means', async () => {
      await using door = await open(LIBRARY);
      await library(door);
      const few = { prefer: 'max-affected=5' };
      for (const [path, headers, status, code] of [
        ['/authors?name=Jane', {}, 428, 'PRECONDITION_REQUIRED'],
        ['/authors', few, 400, 'INVALID_PARAMETER'],
        ['/authors/', few, 400, 'INVALID_PARAMETER'],
        ['/authors?where=%7B%7D', few, 400, 'INVALID_PARAMETER'],
        ['/authors?where=%7B%22and%22%3A%5B%7B%7D%5D%7D', few, 400, 'INVALID_PARAMETER'],
        ['/authors?name=Jane&limit=1', few, 400, 'INVALID_PARAMETER'],
        ['/authors?nam=Jane', few, 400, 'INVALID_PARAMETER'],
        ['/authors?name=Jane', { ...few, 'if-match': '*' }, 400, 'INVALID_PARAMETER'],
        ['/authors?name=Jane', { prefer: 'max-affected=x' }, 400, 'INVALID_PARAMETER'],
        ['/authors?name=Jane', { prefer: 'max-affected=10001' }, 400, 'LIMIT_EXCEEDED'],
      ] as const) {
        const refused = await door.send('DELETE', path, undefined, headers);
        assert.deepEqual([refused.status, refused.body.code], [status, code], `${path} ${refused.text}`);
      }
      assert.equal((await door.get('/authors')).body.length, 2);
    });
  });
}
