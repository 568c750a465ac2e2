import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { relationDoors } from '../support/relations/relation-door.ts';
import { LIBRARY, SPECIMENS } from '../support/relations/relations.ts';

for (const [engine, open] of Object.entries(relationDoors)) {
  describe(`rows of relations on ${engine}`, () => {
    test('a created row is found at its Location, with its ETag', async () => {
      await using door = await open(LIBRARY);
      const created = await door.send('POST', '/authors', { name: 'Jane Austen', born: '1775-12-16' });
      assert.equal(created.status, 201, created.text);
      assert.equal(created.text, '{"id":1,"name":"Jane Austen","born":"1775-12-16"}');
      assert.equal(created.headers.get('location'), '/authors/1');
      assert.equal(created.headers.get('content-type'), 'application/json');
      const found = await door.get('/authors/1');
      assert.deepEqual([found.status, found.text], [200, created.text]);
      assert.match(found.headers.get('etag') ?? '', /^"\d{13}\.[0-9a-f]{8}"$/);
      assert.equal(found.headers.get('etag'), created.headers.get('etag'));
      assert.equal(
        (await door.get('/authors/1/')).text,
        created.text,
        'a trailing slash makes no difference',
      );
      assert.equal((await door.get('/authors/1?fields=name,id')).text, '{"id":1,"name":"Jane Austen"}');
      const known = await door.get('/authors/1', { 'if-none-match': found.headers.get('etag') ?? '' });
      assert.deepEqual([known.status, known.text], [304, '']);
      const head = await door.send('HEAD', '/authors/1');
      assert.deepEqual([head.status, head.headers.get('etag')], [200, found.headers.get('etag')]);
    });

    test('a key of two columns stands in the path, each part escaped', async () => {
      await using door = await open(LIBRARY);
      await door.send('POST', '/authors', { name: 'a' });
      await door.send('POST', '/books', { title: 't', author_id: 1 });
      const reader = 'Ann, "the/reader" %2C?';
      const created = await door.send('POST', '/loans', {
        book_id: 1,
        reader,
        until: '2026-01-31T12:00:00+01:00',
      });
      assert.equal(created.status, 201, created.text);
      const location = created.headers.get('location') ?? '';
      assert.equal(location, `/loans/1,${encodeURIComponent(reader)}`);
      const found = await door.get(location);
      assert.deepEqual(found.body, { book_id: 1, reader, until: '2026-01-31T11:00:00.000Z' });
      assert.equal((await door.get('/loans/1')).status, 404);
      assert.equal((await door.get('/loans/1,Ann,x')).status, 404);
      assert.equal((await door.get('/loans/x,Ann')).status, 404);
      assert.equal((await door.send('DELETE', location)).status, 204);
      assert.equal((await door.get(location)).status, 404);
    });

    test('values of all types come back as they went in', async () => {
      await using door = await open([SPECIMENS]);
      const row = {
        id: 70,
        code: 'Äb\u{1f600}"\\',
        kind: 'beta',
        whole: -9007199254740991,
        big: '-9223372036854775808',
        amount: '123456789012345.678',
        ratio: 0.1,
        flag: true,
        day: '0001-02-03',
        at: '2026-01-31T12:30:00.123Z',
        made: '9999-12-31T23:59:59.999Z',
        token: '0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b',
        data: { b: [1, null, { a: 'ü' }], a: '\n' },
        raw: 'AAEC/w==',
      };
      const created = await door.send('POST', '/specimens', row);
      assert.equal(created.status, 201, created.text);
      assert.deepEqual(created.body, row);
      assert.equal((await door.get('/specimens/70')).text, created.text);
      const patched = await door.send('PATCH', '/specimens/70', {
        ...row,
        big: '9223372036854775807',
        ratio: 1e21,
      });
      assert.deepEqual(patched.body, { ...row, big: '9223372036854775807', ratio: 1e21 });
      assert.equal((await door.get('/specimens/70')).text, patched.text);
      const least = await door.send('POST', '/specimens', { code: 'least' });
      assert.equal(least.status, 201, least.text);
      const { id, made, token, ...others } = least.body;
      assert.equal(id, 71, 'numbers go on behind a given one');
      assert.ok(Math.abs(Date.parse(made) - Date.now()) < 60_000, made);
      assert.match(token, /^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
      assert.deepEqual(others, {
        code: 'least',
        kind: 'alpha',
        whole: null,
        big: null,
        amount: null,
        ratio: null,
        flag: false,
        day: null,
        at: null,
        data: null,
        raw: null,
      });
      assert.equal((await door.get('/specimens/71')).text, least.text);
    });

    test('an array of rows is stored wholly or not at all', async () => {
      await using door = await open(LIBRARY);
      const names = Array.from({ length: 50 }, (_, i) => `n${i}`);
      const created = await door.send(
        'POST',
        '/authors',
        names.map((name) => ({ name })),
      );
      assert.equal(created.status, 201, created.text);
      assert.deepEqual(
        created.body,
        names.map((name, i) => ({ id: i + 1, name, born: null })),
      );
      const refused = await door.send('POST', '/books', [
        { title: 'a', author_id: 1 },
        { title: 'b', author_id: 77 },
        { title: 'a', author_id: 1 },
      ]);
      assert.equal(refused.status, 409, refused.text);
      assert.deepEqual(
        refused.body.errors.map(({ pointer }: { pointer: string }) => pointer),
        ['#/1/author_id', '#/2/author_id', '#/2/title'],
      );
      assert.equal((await door.get('/books/1')).status, 404);
      const many = await door.send(
        'POST',
        '/authors',
        Array.from({ length: 1_001 }, () => ({ name: 'x' })),
      );
      assert.deepEqual([many.status, many.body.code], [400, 'LIMIT_EXCEEDED']);
      assert.equal((await door.send('POST', '/authors', [])).text, '[]');
    });

    test('all faults of a row are named at once, with their places', async () => {
      await using door = await open(LIBRARY);
      const refused = await door.send('POST', '/books', {
        titel: 'x',
        pages: 0,
        price: '1.234',
        author_id: null,
      });
      assert.equal(refused.status, 400);
      assert.equal(refused.headers.get('content-type'), 'application/problem+json');
      assert.equal(refused.headers.get('x-error-code'), 'INVALID_ROW');
      assert.equal(refused.body.code, 'INVALID_ROW');
      assert.deepEqual(refused.body.errors, [
        { detail: 'books has no column "titel"; did you mean title?', pointer: '#/titel' },
        { detail: '"title" is missing', pointer: '#/title' },
        { detail: '"pages" must be at least 1', pointer: '#/pages' },
        { detail: '"price" must have at most 2 digits after the point', pointer: '#/price' },
        { detail: '"author_id" must not be null', pointer: '#/author_id' },
      ]);
      for (const body of ['7', '"x"', 'null']) {
        const other = await door.send('POST', '/books', body);
        assert.deepEqual(other.body.errors, [{ detail: 'a row must be a JSON object', pointer: '#' }], body);
      }
      assert.equal((await door.send('POST', '/books', '{')).body.code, 'MALFORMED_JSON');
      const given = await door.send('POST', '/authors', { id: 7, name: 'x' });
      assert.deepEqual(given.body.errors, [
        { detail: '"id" is assigned by the service; leave it out', pointer: '#/id' },
      ]);
    });

    test('a patch changes what it names, under the condition that it has', async () => {
      await using door = await open(LIBRARY);
      await door.send('POST', '/authors', { name: 'Jane', born: '1775-12-16' });
      const first = await door.get('/authors/1');
      const etag = first.headers.get('etag') ?? '';
      const patched = await door.send('PATCH', '/authors/1', { name: 'Jane Austen' }, { 'if-match': etag });
      assert.deepEqual(
        [patched.status, patched.text],
        [200, '{"id":1,"name":"Jane Austen","born":"1775-12-16"}'],
      );
      const next = patched.headers.get('etag') ?? '';
      assert.ok(next > etag, `${next} > ${etag}`);
      const late = await door.send('PATCH', '/authors/1', { name: 'x' }, { 'if-match': etag });
      assert.deepEqual([late.status, late.body.code], [412, 'PRECONDITION_FAILED']);
      assert.equal((await door.get('/authors/1')).text, patched.text);
      const emptied = await door.send(
        'PATCH',
        '/authors/1',
        { born: null, id: 1 },
        { 'if-match': `"7", ${next}` },
      );
      assert.deepEqual(emptied.body, { id: 1, name: 'Jane Austen', born: null });
      const moved = await door.send('PATCH', '/authors/1', { id: 2, name: 7 });
      assert.deepEqual(
        moved.body.errors.map(({ pointer }: { pointer: string }) => pointer),
        ['#/id', '#/name'],
      );
      assert.equal((await door.send('PATCH', '/authors/9', { name: 'x' })).status, 404);
      const some = await door.send('PATCH', '/authors/1', { name: 'y' }, { prefer: 'return=minimal' });
      assert.deepEqual(
        [some.status, some.text, some.headers.get('preference-applied')],
        [204, '', 'return=minimal'],
      );
    });

    test('of writes at the same time for one version one is taken', async () => {
      await using door = await open(LIBRARY);
      const created = await door.send('POST', '/authors', { name: 'Jane' });
      const match = { 'if-match': created.headers.get('etag') ?? '' };
      const replies = await Promise.all(
        Array.from({ length: 12 }, (_, n) => door.send('PATCH', '/authors/1', { name: `n${n}` }, match)),
      );
      assert.deepEqual(replies.map(({ status }) => status).toSorted(), [200, ...Array(11).fill(412)]);
      const [taken] = replies.filter(({ status }) => status === 200);
      assert.equal((await door.get('/authors/1')).text, taken?.text);
    });

    test('a put stores the whole row, and creates one whose key the client gives', async () => {
      await using door = await open(LIBRARY);
      await door.send('POST', '/authors', { name: 'Jane', born: '1775-12-16' });
      const put = await door.send('PUT', '/authors/1', { name: 'Austen' });
      assert.deepEqual([put.status, put.body], [200, { id: 1, name: 'Austen', born: null }]);
      assert.equal((await door.send('PUT', '/authors/2', { name: 'x' })).status, 404);
      await door.send('POST', '/books', { title: 't', author_id: 1 });
      const created = await door.send('PUT', '/loans/1,ann', { until: '2026-01-31T12:00:00Z' });
      assert.deepEqual([created.status, created.headers.get('location')], [201, '/loans/1,ann']);
      const again = await door.send('PUT', '/loans/1,ann', { reader: 'ann' });
      assert.deepEqual([again.status, again.body], [200, { book_id: 1, reader: 'ann', until: null }]);
      const onlyNew = await door.send('PUT', '/loans/1,ann', {}, { 'if-none-match': '*' });
      assert.deepEqual([onlyNew.status, onlyNew.body.code], [412, 'PRECONDITION_FAILED']);
      const other = await door.send('PUT', '/loans/1,ben', {}, { 'if-none-match': '*' });
      assert.equal(other.status, 201);
      const gone = await door.send('PUT', '/loans/1,carl', {}, { 'if-match': '*' });
      assert.equal(gone.status, 404, 'a condition needs a row');
      const both = await Promise.all([1, 2, 3, 4].map(() => door.send('PUT', '/loans/1,dora', {})));
      assert.deepEqual(both.map(({ status }) => status).sort(), [200, 200, 200, 201]);
      const missing = await door.send('PUT', '/loans/7,eve', {});
      assert.deepEqual([missing.status, missing.body.code], [409, 'REFERENCE_MISSING']);
    });

    test('constraints are refused by our names, never with the text of an engine', async () => {
      await using door = await open([...LIBRARY, SPECIMENS]);
      await door.send('POST', '/authors', { name: 'a' });
      await door.send('POST', '/books', { title: 't', author_id: 1 });
      const taken = await door.send('POST', '/books', { title: 't', author_id: 1 });
      assert.deepEqual([taken.status, taken.body.code], [409, 'TAKEN']);
      assert.deepEqual(taken.body.errors, [
        { detail: 'another row has the same author_id and title', pointer: '#/author_id' },
        { detail: 'another row has the same author_id and title', pointer: '#/title' },
      ]);
      assert.equal(taken.body.detail, 'another row has the same author_id and title');
      const missing = await door.send('POST', '/books', { title: 't', author_id: 77 });
      assert.deepEqual(missing.body.errors, [
        { detail: 'authors has no row with this key (author_id)', pointer: '#/author_id' },
      ]);
      const referenced = await door.send('DELETE', '/authors/1');
      assert.deepEqual([referenced.status, referenced.body.code], [409, 'REFERENCED']);
      assert.deepEqual(referenced.body.errors, [{ detail: 'rows of books refer to this row', pointer: '#' }]);
      await door.send('POST', '/specimens', { code: 'One' });
      const folded = await door.send('POST', '/specimens', { id: 1, code: 'oNE' });
      assert.deepEqual(
        folded.body.errors.map(({ pointer }: { pointer: string }) => pointer),
        ['#/id', '#/code'],
      );
      const other = await door.send('POST', '/specimens', { code: 'two' });
      const moved = await door.send('PATCH', `/specimens/${other.body.id}`, { code: 'ONE' });
      assert.deepEqual([moved.status, moved.body.code], [409, 'TAKEN']);
      assert.equal((await door.send('PATCH', `/specimens/${other.body.id}`, { code: 'TWO' })).status, 200);
      const orphan = await door.send('PATCH', '/books/1', { author_id: 78 });
      assert.deepEqual([orphan.status, orphan.body.code], [409, 'REFERENCE_MISSING']);
      for (const { text } of [taken, missing, referenced, folded, moved, orphan]) {
        assert.doesNotMatch(text, /constraint|violat|sqlite|foreign key|__/i);
      }
      await door.send('POST', '/loans', { book_id: 1, reader: 'ann' });
      assert.equal((await door.send('DELETE', '/books/1')).status, 204);
      assert.equal((await door.get('/loans/1,ann')).status, 404, 'loans go with their book');
      assert.equal((await door.send('DELETE', '/authors/1')).status, 204);
      assert.equal((await door.send('DELETE', '/authors/1')).status, 404);
    });

    test('a create with an Idempotency-Key takes effect once', async () => {
      await using door = await open(LIBRARY);
      const key = { 'idempotency-key': 'k1' };
      const first = await door.send('POST', '/authors', { name: 'a' }, key);
      const again = await door.send('POST', '/authors', { name: 'a' }, key);
      assert.deepEqual([first.status, again.status, again.text], [201, 201, first.text]);
      assert.equal(again.headers.get('location'), first.headers.get('location'));
      const other = await door.send('POST', '/authors', { name: 'b' }, key);
      assert.deepEqual([other.status, other.body.code], [422, 'IDEMPOTENCY_KEY_REUSED']);
      await door.send('POST', '/books', { title: 't', author_id: 1 }, key);
      const loan = await door.send('POST', '/loans', { book_id: 1, reader: 'a,b' }, key);
      const same = await door.send('POST', '/loans', { book_id: 1, reader: 'a,b' }, key);
      assert.deepEqual([loan.status, same.status, same.text], [201, 201, loan.text], loan.text);
      assert.equal(same.headers.get('location'), '/loans/1,a%2Cb');
      assert.equal((await door.get('/authors/2')).status, 404);
      const refused = await door.send(
        'POST',
        '/books',
        { title: 'x', author_id: 7 },
        { 'idempotency-key': 'k2' },
      );
      assert.equal(refused.status, 409);
      await door.send('DELETE', '/loans/1,a%2Cb');
      const gone = await door.send('POST', '/loans', { book_id: 1, reader: 'a,b' }, key);
      assert.deepEqual([gone.status, gone.text], [201, '']);
      const user = await door.send('POST', '/users', { name: 'n', email: 'a@b' }, key);
      assert.equal(user.status, 200, 'users have keys of their own');
    });

    test('paths, methods and media types are refused as those of users are', async () => {
      await using door = await open(LIBRARY);
      for (const [method, path, status] of [
        ['PUT', '/authors', 405],
        ['POST', '/authors/1', 405],
        ['GET', '/authors/1/2', 404],
        ['GET', '/author/1', 404],
        ['GET', '/authors/01x', 404],
        ['DELETE', '/authors/1', 404],
      ] as const) {
        const { status: found } = await door.send(method, path);
        assert.equal(found, status, `${method} ${path}`);
      }
      const wrong = await door.send('PUT', '/authors');
      assert.match(wrong.headers.get('allow') ?? '', /POST/);
      await door.send('POST', '/authors', { name: 'a' });
      const csv = await door.send('PUT', '/authors/1', 'name\r\na', { 'content-type': 'text/csv' });
      assert.deepEqual([csv.status, csv.body.code], [415, 'UNSUPPORTED_MEDIA_TYPE']);
      const large = await door.send('POST', '/authors', `{"name":"${'x'.repeat(1024 * 1024)}"}`);
      assert.deepEqual([large.status, large.body.code], [413, 'BODY_TOO_LARGE']);
      assert.equal(large.headers.get('content-type'), 'application/problem+json');
      const parameter = await door.get('/authors/1?field=name');
      assert.deepEqual([parameter.status, parameter.body.code], [400, 'INVALID_PARAMETER']);
      assert.equal(parameter.body.errors[0].parameter, 'field');
      assert.equal((await door.get('/users/1')).headers.get('content-type'), 'application/json');
    });
  });
}
