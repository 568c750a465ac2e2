import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { openDatabase } from '../../src/sql/open.ts';
import { Connection } from '../../src/sql/postgres-pool/connection.ts';
import { follow } from '../rest/support/rest-door.ts';
import { postgresUrl, withoutPostgres } from '../support/databases.ts';
import { type RelationDoor, relationDoors } from '../support/relations/relation-door.ts';
import { column, LIBRARY, relation, SPECIMENS, text } from '../support/relations/relations.ts';
import { eventsUntil } from '../support/user-events.ts';

type Stream = Awaited<ReturnType<typeof follow>>;

/** The next events of a stream: their names and data. */
async function next(stream: Stream, count: number) {
  const found: { readonly name: string; readonly id: string; readonly data: Record<string, unknown> }[] = [];
  while (found.length < count) {
    const sent = await stream.next();
    if (sent === undefined) throw new Error('the stream has ended');
    if (sent.data !== '') found.push({ name: sent.event, id: sent.id, data: JSON.parse(sent.data) });
  }
  return found;
}

const followed = (door: RelationDoor, path: string, headers: Readonly<Record<string, string>> = {}) =>
  follow(door.url, headers, '', path);

const changesOff = relation('notes', {
  columns: [column('id', { kind: 'serial', open: false }), column('t', text(9))],
  changes: false,
});

for (const [engine, open] of Object.entries(relationDoors)) {
  describe(`changes of relations on ${engine}`, () => {
    test('a follower whose next events were removed is told so before its stream ends', async () => {
      await using door = await open(LIBRARY);
      await using stream = await followed(door, '/authors');
      await door.send('POST', '/authors', { name: 'a' });
      const [{ id } = { id: '' }] = await next(stream, 1);
      await door.run('DELETE FROM relation_events');
      await door.send('POST', '/authors', { name: 'b' });
      const [gone] = await next(stream, 1);
      assert.deepEqual([gone?.name, gone?.id, gone?.data.code], ['gone', '', 'EVENTS_GONE']);
      const rest = [];
      for (let sent = await stream.next(); sent !== undefined; sent = await stream.next())
        rest.push(sent.data);
      assert.deepEqual(new Set(rest), new Set(['']));
      const again = await door.get('/authors', { accept: 'text/event-stream', 'last-event-id': id });
      assert.equal(again.status, 410);
    });

    test('each write is an event with the row as the list shows it, in order over all relations', async () => {
      await using door = await open(LIBRARY);
      await using stream = await followed(door, '/_changes?relation=authors,books,loans');
      await door.send('POST', '/authors', { name: 'Jane "J" Austen\u2028', born: '1775-12-16' });
      await door.send('POST', '/books', [
        { title: 'Emma', author_id: 1 },
        { title: 'Persuasion', author_id: 1 },
      ]);
      await door.send('PATCH', '/books/1', { price: '12.5' });
      await door.send('PUT', '/loans/1,ann%2C%20b', { until: '2026-01-31T12:00:00+01:00' });
      // What cascades.
      assert.equal((await door.send('DELETE', '/books/1')).status, 204);
      const events = await next(stream, 7);
      assert.deepEqual(
        events.map(({ name, data }) => [name, data.relation, data.type, data.key]),
        [
          ['author.created', 'authors', 'created', '1'],
          ['book.created', 'books', 'created', '1'],
          ['book.created', 'books', 'created', '2'],
          ['book.updated', 'books', 'updated', '1'],
          ['loan.created', 'loans', 'created', '1,ann%2C%20b'],
          ['book.deleted', 'books', 'deleted', '1'],
          ['loan.deleted', 'loans', 'deleted', '1,ann%2C%20b'],
        ],
      );
      for (const { id, data } of events) assert.equal(String(data.position), id.split('.')[0]);
      const positions = events.map(({ data }) => Number(data.position));
      assert.deepEqual(
        positions,
        Array.from(positions, (_, i) => (positions[0] ?? 0) + i),
        'no gap',
      );
      const [authors, books] = [await door.get('/authors'), await door.get('/books')];
      assert.deepEqual([events[0]?.data.row], authors.body);
      assert.deepEqual([events[2]?.data.row], books.body);
      assert.match(JSON.stringify(events[3]?.data.row), /"price":"12.50"/);
    });

    test('rows of all types are byte for byte those of the list', async () => {
      await using door = await open([SPECIMENS]);
      await using stream = await followed(door, '/specimens');
      const row = {
        id: 70,
        code: 'Äb\u{1f600}"\\',
        kind: 'beta',
        whole: -9007199254740991,
        big: '-9223372036854775808',
        amount: '-0.005',
        ratio: 0.1,
        flag: true,
        day: '0001-01-01',
        at: '0001-01-01T00:00:00.001Z',
        data: { b: [1, { a: 1e21 }], '1': null, __proto__: 'x', text: 'a\nb' },
        raw: 'AAH/',
      };
      await door.send('POST', '/specimens', row);
      await door.send('POST', '/specimens', {
        id: 71,
        code: 'b',
        ratio: 1e300,
        amount: '999999999999999.999',
      });
      await door.send('POST', '/specimens', { id: 72, code: 'c', ratio: 5e-324, raw: '', data: [] });
      const events = await next(stream, 3);
      const rows = events.map(({ data }) => JSON.stringify(data.row));
      assert.equal(`[${rows.join()}]`, (await door.get('/specimens')).text);
    });

    test('the stream of several relations needs no Accept header, on both transports', async () => {
      for (const fastPath of [true, false]) {
        await using door = await open(LIBRARY, { fastPath });
        await using stream = await followed(door, '/_changes?relation=authors,books', { accept: '*/*' });
        assert.match(stream.response.headers.get('content-type') ?? '', /^text\/event-stream/);
        await door.send('POST', '/authors', { name: 'Ann' });
        assert.deepEqual((await next(stream, 1))[0]?.data.row, { id: 1, name: 'Ann', born: null });
      }
    });

    test('a stream goes on behind the last event, and refuses a position that is gone', async () => {
      await using door = await open(LIBRARY);
      for (const name of ['a', 'b', 'c']) await door.send('POST', '/authors', { name });
      let last = '';
      {
        await using stream = await followed(door, '/authors');
        await door.send('POST', '/authors', { name: 'd' });
        [{ id: last } = { id: '' }] = await next(stream, 1);
      }
      for (const name of ['e', 'f']) await door.send('POST', '/authors', { name });
      await using again = await followed(door, '/authors', { 'last-event-id': last });
      const names = (await next(again, 2)).map(({ data }) => (data.row as { name: string }).name);
      assert.deepEqual(names, ['e', 'f']);
      const gone = await door.get('/authors', {
        accept: 'text/event-stream',
        'last-event-id': '77.1795356315800',
      });
      assert.deepEqual([gone.status, gone.body.code], [410, 'EVENTS_GONE']);
    });

    test('changes that other programs make are events, and an update that changes nothing too', async () => {
      await using door = await open(LIBRARY);
      await using stream = await followed(door, '/authors');
      await door.run(`INSERT INTO authors (name) VALUES ('x'), ('y')`);
      await door.run(`UPDATE authors SET name = name`);
      await door.run(`DELETE FROM authors WHERE name = 'x'`);
      const events = await next(stream, 5);
      assert.deepEqual(
        events.map(({ data }) => `${data.type} ${data.key}`),
        ['created 1', 'created 2', 'updated 1', 'updated 2', 'deleted 1'],
      );
    });

    test('filters on columns of the row narrow a stream; a client learns how far it is', async () => {
      await using door = await open(LIBRARY);
      await using stream = await followed(door, '/authors?name=Ann&name=Bob&born:null=true');
      await using tree = await followed(
        door,
        `/authors?where=${encodeURIComponent('{"not":{"name":{"prefix":"A"}}}')}`,
      );
      const others = Array.from({ length: 150 }, (_, i) => ({ name: `A${i}` }));
      await door.send('POST', '/authors', others);
      const begin = await stream.next();
      const passed = await stream.next();
      assert.equal(passed?.data, '');
      assert.notEqual(passed?.id, begin?.id);
      await door.send('POST', '/authors', [
        { name: 'Bob' },
        { name: 'Ann', born: '2000-01-01' },
        { name: 'Ann' },
      ]);
      const found = await next(stream, 2);
      assert.deepEqual(
        found.map(({ data }) => (data.row as { name: string }).name),
        ['Bob', 'Ann'],
      );
      assert.deepEqual(
        (await next(tree, 1)).map(({ data }) => (data.row as { name: string }).name),
        ['Bob'],
      );
    });

    test('filters of a stream of several relations hold for the rows of each', async () => {
      await using door = await open(LIBRARY);
      const path = `/_changes?relation=books,loans&where=${encodeURIComponent('{"author_id":2}')}`;
      const refused = await door.get(path);
      assert.match(refused.body.detail, /"where" names "author_id", which loans does not have/);
      await using one = await followed(door, '/_changes?relation=books&author_id=2');
      await using stream = await followed(door, '/_changes?relation=books,authors&id:gte=2');
      await door.send('POST', '/authors', [{ name: 'Ann' }, { name: 'Bob' }]);
      await door.send('POST', '/books', [
        { title: 'a', author_id: 1 },
        { title: 'b', author_id: 2 },
      ]);
      const keys = (events: Awaited<ReturnType<typeof next>>) =>
        events.map(({ data }) => `${data.relation} ${data.key}`);
      assert.deepEqual(keys(await next(stream, 2)), ['authors 2', 'books 2']);
      assert.deepEqual(keys(await next(one, 1)), ['books 2']);
    });

    test('refusals say what a stream takes', async () => {
      await using door = await open([...LIBRARY, changesOff]);
      const ask = async (path: string) => {
        const { status, body } = await door.get(path, { accept: 'text/event-stream' });
        return [status, body.code, body.detail];
      };
      assert.deepEqual(await ask('/books?author.name=Ann'), [
        400,
        'INVALID_PARAMETER',
        '"author.name" concerns rows of other relations; an event stream takes filters on columns of books only',
      ]);
      assert.deepEqual((await ask('/books?titel=x')).slice(0, 2), [400, 'INVALID_PARAMETER']);
      assert.match(String((await ask('/books?limit=3'))[2]), /not "limit"/);
      assert.match(String((await ask('/_changes'))[2]), /relation=authors,books,loans/);
      assert.match(String((await ask('/_changes?relation=book'))[2]), /did you mean books/);
      const other = await ask('/_changes?relation=books,authors&title=x');
      assert.match(String(other[2]), /"title" names "title", which authors does not have/);
      for (const name of ['users', 'books,users']) {
        const users = await ask(`/_changes?relation=${name}`);
        assert.deepEqual(users, [
          400,
          'INVALID_PARAMETER',
          'Follow users at /users, with "Accept: text/event-stream"',
        ]);
      }
      assert.match(String((await ask('/_changes?relation=notes'))[2]), /^notes does not record its changes/);
      assert.deepEqual((await ask('/notes')).slice(0, 2), [406, 'NOT_ACCEPTABLE']);
      assert.equal((await door.send('POST', '/_changes', {})).status, 405);
      await using bare = await open([]);
      assert.equal((await bare.get('/_changes?relation=books')).status, 404);
    });
  });
}

test('a change whose commit is late comes after those that were read before', {
  skip: withoutPostgres ?? false,
}, async () => {
  const url = await postgresUrl();
  await using database = await openDatabase(url);
  const { changes } = await database.openRelations(LIBRARY);
  assert.ok(changes !== undefined);
  const events = await changes.follow();
  await using late = await Connection.open(url);
  await using early = await Connection.open(url);
  const insert = (name: string) => ({ text: `INSERT INTO authors (name) VALUES ('${name}')` });
  await late.run({ text: 'BEGIN' }, undefined);
  await late.run(insert('late'), undefined);
  await early.run(insert('early'), undefined);
  changes.wake();
  const first = await eventsUntil(events, 1);
  await late.run({ text: 'COMMIT' }, undefined);
  changes.wake();
  const second = await eventsUntil(events, 1);
  const names = [...first, ...second].map(({ json }) => JSON.parse(json).row.name);
  assert.deepEqual(names, ['early', 'late']);
  await events.return();
});
