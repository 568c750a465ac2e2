import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type ChangeEvent, client, PorticoError, result } from 'portico/client';
import { engineUrls } from '../support/databases.ts';
import { startTestService } from '../support/service.ts';
import { waitFor } from '../support/wait-for.ts';

const RELATIONS = {
  authors: { columns: { name: { type: 'text', max: 120, unique: true } } },
  books: {
    columns: {
      title: { type: 'text', max: 200 },
      price: { type: 'decimal', precision: 10, scale: 2, default: '9.90' },
      author: { type: 'reference', to: 'authors' },
    },
    unique: [['author_id', 'title']],
  },
  loans: {
    key: ['book_id', 'reader'],
    columns: { book: { type: 'reference', to: 'books' }, reader: { type: 'text', max: 60 } },
  },
  // A name that a client has itself.
  batch: { one: 'part', columns: { n: { type: 'integer' } } },
};
/** With a sign that ends lines in JavaScript alone. */
const FIRST = 'fir\u2028st';
const TOKEN = 'page-token-0123456789';

/** A service, and a client that finds it at whatever address it has after a restart. */
async function start(url: string, token?: string | (() => string)) {
  const api = {
    required: token === undefined ? 'none' : 'all',
    tokens: { page: { secret: TOKEN, scopes: ['*:read', '*:write'] } },
  };
  const service = await startTestService({
    module: `export default ${JSON.stringify({ relations: RELATIONS, api })};`,
    env: { DATABASE_URL: url, INTERFACES: 'rest' },
    listens: true,
  });
  const portico = client('http://portico/', {
    fetch: (to, init) => fetch(String(to).replace('http://portico', service.urls.rest ?? ''), init),
    ...(token !== undefined && { token }),
  });
  const of = (name: string) => portico.relation(name);
  return { service, portico, of, [Symbol.asyncDispose]: () => service[Symbol.asyncDispose]() };
}

/** The properties of the error that a promise rejects with. */
async function refusal(promise: Promise<unknown>) {
  const error = await promise.then(
    () => assert.fail('it was not refused'),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof PorticoError, String(error));
  const { status, code, errors, retryAfter } = error;
  return { status, code, errors, retryAfter };
}

/** Gathers the events of a stream until it ends. */
function gather(stream: AsyncIterable<ChangeEvent>) {
  const events: ChangeEvent[] = [];
  const end = (async () => {
    for await (const event of stream) events.push(event);
  })();
  // A test that fails earlier does not wait for it.
  end.catch(() => {});
  const told = () =>
    events.map(({ type, relation, key, row }) => [type, relation, key, row?.name ?? row?.title]);
  return { events, end, told };
}

for (const [engine, urlOf] of Object.entries(engineUrls)) {
  describe(`the client of relations on ${engine}`, () => {
    test('reads pages and rows, with rows of others within them', async () => {
      await using given = await start(await urlOf());
      const { of, portico } = given;
      await of('authors').createMany([{ name: 'Jane' }, { name: 'Ann, "B" & C' }]);
      const titles = ['a', 'b', 'c', 'd', 'e'];
      await of('books').createMany(
        titles.map((title, i) => ({ title, author_id: 1 + (i % 2), price: `${i}.5` })),
      );
      const first = await of('books').list({
        where: { price: { gte: '1' } },
        sort: '-title',
        fields: ['title'],
        limit: 3,
        count: true,
      });
      assert.deepEqual(
        [first.rows, first.total, first.hasNext],
        [[{ title: 'e' }, { title: 'd' }, { title: 'c' }], 4, true],
      );
      const second = await first.next();
      assert.deepEqual([second?.rows, second?.total, second?.hasNext], [[{ title: 'b' }], 4, false]);
      assert.equal(await second?.next(), undefined);
      assert.equal((await portico.books?.list())?.total, undefined);
      const sorted = await of('books').list({ sort: ['author.name', '-price'], fields: ['id'] });
      assert.deepEqual(
        sorted.rows.map(({ id }) => id),
        [4, 2, 5, 3, 1],
      );
      assert.deepEqual(await of('books').get(1, { fields: ['title'] }), { title: 'a' });
      const embedded = await of('authors').get(2, {
        embed: {
          books: {
            fields: ['title'],
            sort: '-title',
            limit: 1,
            where: { title: { ne: 'x' } },
            embed: { author: true },
          },
        },
      });
      const author = { id: 2, name: 'Ann, "B" & C' };
      assert.deepEqual(embedded, { ...author, books: [{ title: 'd', author }] });
      assert.deepEqual(await refusal(of('books').get(99)), {
        status: 404,
        code: 'NOT_FOUND',
        errors: [],
        retryAfter: undefined,
      });
      const { status, code, errors } = await refusal(of('books').list({ where: { titel: 'a' } }));
      assert.deepEqual([status, code, errors[0]?.parameter], [400, 'INVALID_PARAMETER', 'where']);
      await portico.relation('batch').create({ n: 3 });
      assert.deepEqual((await portico.relation('batch').list()).rows, [{ id: 1, n: 3 }]);
      assert.equal(await Promise.resolve(portico), portico);
    });

    test('writes rows, each alone and many in one transaction', async () => {
      await using given = await start(await urlOf());
      const { of, portico } = given;
      const key = { idempotencyKey: 'one' };
      const jane = await of('authors').create({ name: 'Jane' }, key);
      assert.deepEqual(jane, { id: 1, name: 'Jane' });
      assert.deepEqual(await of('authors').create({ name: 'Jane' }, key), jane);
      const taken = await refusal(of('authors').create({ name: 'Jane' }));
      assert.deepEqual([taken.status, taken.code, taken.errors[0]?.pointer], [409, 'TAKEN', '#/name']);
      const renamed = await of('authors').update(1, { name: 'J' }, { ifMatch: jane });
      assert.deepEqual(renamed, { id: 1, name: 'J' });
      assert.equal(
        (await refusal(of('authors').update(1, { name: 'x' }, { ifMatch: jane }))).code,
        'PRECONDITION_FAILED',
      );
      const embedded = await of('authors').get(1, { embed: { books: true } });
      await assert.rejects(
        of('authors').update(1, { name: 'x' }, { ifMatch: embedded }),
        /ifMatch takes an ETag/,
      );
      await of('authors').update(1, { name: 'Jane' }, { ifMatch: await of('authors').get(1) });
      const book = await of('books').create({
        title: 'Emma',
        author: { name: 'Cy' },
        loans: [{ reader: 'a' }],
      });
      assert.equal((await of('authors').get(Number(book.author_id))).name, 'Cy');
      assert.deepEqual(await of('loans').put([1, 'a, b/%'], {}), { book_id: 1, reader: 'a, b/%' });
      assert.deepEqual(await of('loans').get([1, 'a, b/%']), { book_id: 1, reader: 'a, b/%' });
      assert.equal(await of('loans').remove([1, 'a, b/%']), undefined);
      assert.equal((await refusal(of('loans').remove([1, 'a, b/%']))).status, 404);
      const on = ['author_id', 'title'];
      const row = { title: 'Emma', author_id: book.author_id, price: '1.00' };
      assert.equal((await of('books').upsert(row, { on, ignore: true })).price, '9.90');
      assert.equal((await of('books').upsert(row, { on })).price, '1.00');
      const results = await portico.batch([
        { create: 'authors', row: { name: 'Emily' } },
        { create: 'books', row: { title: 'Poems', author_id: result(0, 'id') } },
        { update: 'books', key: result(1, 'id'), patch: { price: '3.00' } },
        { put: 'loans', key: [result(1, 'id'), 'c'], row: {} },
        { upsert: 'books', row: { ...row, price: '2.00' }, on, ignore: true },
        { remove: 'loans', key: [1, 'a'] },
      ]);
      assert.deepEqual(
        results.map(({ status }) => status),
        [201, 201, 200, 201, 200, 204],
      );
      assert.deepEqual(
        results.slice(2, 3).map(({ body }) => Object(body).price),
        ['3.00'],
      );
      assert.equal(Object(results[4]?.body).price, '1.00');
      assert.equal(results[5]?.body, null);
      const stale = Object(results[2]?.body) as Readonly<Record<string, unknown>>;
      await of('books').update(String(stale.id), { price: '4.00' }, { ifMatch: stale });
      const refused = await refusal(
        portico.batch([
          { update: 'books', key: 1, patch: { price: '7.00' } },
          { update: 'books', key: String(stale.id), patch: { price: '5.00' }, ifMatch: stale },
        ]),
      );
      assert.deepEqual([refused.code, refused.errors[0]?.pointer], ['PRECONDITION_FAILED', '#/writes/1']);
      assert.equal((await of('books').get(1)).price, '1.00', 'nothing of it was stored');
    });

    test('follows changes over a restart of the service, and leaves out nothing', async () => {
      await using given = await start(await urlOf());
      const { service, of, portico } = given;
      const controller = new AbortController();
      // Also if the test fails: a client would look for the service for ever.
      using _ = { [Symbol.dispose]: () => controller.abort() };
      const { signal } = controller;
      await of('authors').create({ name: 'before' });
      const opened: string[] = [];
      const onOpen = async () => {
        // Made while the stream is open, so that it is also an event.
        await of('authors').create({ name: FIRST });
        opened.push(...(await of('authors').list()).rows.map(({ name }) => String(name)));
      };
      const followed = gather(of('authors').follow({ signal, onOpen }));
      const both = gather(portico.follow(['books', 'authors'], { signal, types: ['created', 'deleted'] }));
      const some = gather(of('books').follow({ signal, where: { title: { prefix: 'E' } } }));
      // Each of them gets one event before the restart.
      const { told } = followed;
      await waitFor('the first event', () => told().length > 0);
      let number = 0;
      await waitFor('all streams to be open', async () => {
        await of('books').create({ title: `E${number++}`, author_id: 1 });
        return both.events.length > 0 && some.events.length > 0;
      });
      const ids = followed.events.map(({ id }) => id);
      const restarted = service.restart();
      await restarted;
      const author = await of('authors').create({ name: 'second' });
      await of('authors').update(String(author.id), { name: 'third' });
      await of('authors').remove(String(author.id));
      await of('books').create({ title: 'Not', author_id: 1 });
      await of('books').create({ title: 'End', author_id: 1 });
      const last = (stream: typeof both, title: string) =>
        waitFor(`the event of ${title}`, () =>
          stream.told().some((each) => each[3] === title && each[0] !== 'updated'),
        );
      await Promise.all([
        last(both, 'End'),
        last(some, 'End'),
        waitFor('four events', () => told().length >= 4),
      ]);
      const key = String(author.id);
      assert.deepEqual(told(), [
        ['created', 'authors', told()[0]?.[2], FIRST],
        ['created', 'authors', key, 'second'],
        ['updated', 'authors', key, 'third'],
        ['deleted', 'authors', key, 'third'],
      ]);
      assert.deepEqual(opened, ['before', FIRST], 'it is called once');
      assert.ok(!some.told().some((each) => each[3] === 'Not'));
      const positions = both.events.map(({ position }) => position);
      assert.deepEqual(
        positions,
        positions.toSorted((a, b) => a - b),
      );
      assert.deepEqual(
        both
          .told()
          .slice(-4)
          .map(([type, , , name]) => `${type} ${name}`),
        ['created second', 'deleted third', 'created Not', 'created End'],
      );
      // A new client goes on behind an event.
      const later = of('authors').follow({ from: ids[0] ?? '', signal });
      assert.deepEqual((await later.next()).value?.row, { id: author.id, name: 'second' });
      await later.return?.();
      controller.abort();
      await Promise.all([followed.end, both.end, some.end]);
    });

    test('says that the events behind a position are gone', async () => {
      await using given = await start(await urlOf());
      const gone = await refusal(given.of('authors').follow({ from: '77.1' }).next());
      assert.deepEqual([gone.status, gone.code], [410, 'EVENTS_GONE']);
    });
  });
}

test('a client sends its token, asks for a new one, and tells of refusals', async () => {
  const url = engineUrls.SQLite;
  assert.ok(url !== undefined);
  const tokens = ['wrong-token-0123456789', TOKEN, TOKEN, 'wrong-token-0123456789'];
  await using given = await start(await url(), () => tokens.shift() ?? '');
  const { of } = given;
  assert.deepEqual((await refusal(of('authors').list())).code, 'UNAUTHORIZED');
  assert.deepEqual((await of('authors').list()).rows, []);
  const stream = of('authors').follow({ onOpen: () => Promise.reject(new RangeError('from the program')) });
  await assert.rejects(stream.next(), /from the program/);
  assert.deepEqual((await refusal(of('authors').follow().next())).status, 401);
});

test('a client uses users as any relation where the service serves them so', async () => {
  await using service = await startTestService({
    env: { INTERFACES: 'rest', REST_USERS: 'standard' },
    listens: true,
  });
  const users = client(service.urls.rest ?? '').relation('users');
  const { signal } = new AbortController();
  const onOpen = async () => {
    const ada = await users.create({ name: 'Ada', email: 'ada@x' });
    await users.update(1, { name: 'Bea' }, { ifMatch: ada });
    await users.remove(1);
    wasWaitedFor = true;
  };
  let wasWaitedFor = false;
  const told: unknown[] = [];
  for await (const { type, relation, key, row, position, id } of users.follow({ onOpen, signal })) {
    assert.ok(wasWaitedFor);
    told.push([type, relation, key, row?.name, id.startsWith(`${position}.`)]);
    if (type === 'deleted') break;
  }
  assert.deepEqual(told, [
    ['created', 'users', '1', 'Ada', true],
    ['updated', 'users', '1', 'Bea', true],
    ['deleted', 'users', '1', 'Bea', true],
  ]);
});
