import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import Fastify from 'fastify';
import pg from 'pg';
import type { HandlerSpec } from '../../src/inbox/config.ts';
import type { Delivery } from '../../src/inbox/delivery.ts';
import type { Database } from '../../src/sql/database.ts';
import { type DeliveryToEnqueue, enqueue } from '../../src/sql/enqueue.ts';
import { openDatabase } from '../../src/sql/open.ts';
import { webhook } from '../../src/webhook/webhook.ts';
import { postgresUrl, withoutPostgres } from '../support/databases.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

/** A connection of a program's own. */
interface Own extends AsyncDisposable {
  sql(text: string): Promise<unknown>;
  enqueue(delivery: DeliveryToEnqueue): Promise<string>;
}

async function sqlite() {
  const folder = await temporaryFolder();
  const file = join(folder.path, 'test.db');
  return {
    url: `sqlite:${file}`,
    connect: async (): Promise<Own> => {
      const db = new DatabaseSync(file, { timeout: 5_000 });
      return {
        sql: async (text) => db.exec(text),
        enqueue: async (delivery) => enqueue(db, delivery),
        [Symbol.asyncDispose]: async () => db.close(),
      };
    },
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

async function postgres() {
  const url = await postgresUrl();
  return {
    url,
    connect: async (): Promise<Own> => {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      return {
        sql: (text) => client.query(text),
        enqueue: (delivery) => enqueue(client, delivery),
        [Symbol.asyncDispose]: () => client.end(),
      };
    },
    async [Symbol.asyncDispose]() {},
  };
}

const places = { sqlite, ...(withoutPostgres === undefined && { postgres }) };

/** A service with a handler of the event `e` on a database. */
async function serve({ inbox }: Database, rules: Partial<HandlerSpec> = {}) {
  const got: Delivery[] = [];
  const app = Fastify();
  app.register(webhook, {
    inbox,
    handlers: { e: { ...rules, handler: (delivery) => void got.push(delivery) } },
  });
  await app.ready();
  return { got, [Symbol.asyncDispose]: () => app.close() };
}

for (const [engine, open] of Object.entries(places)) {
  describe(`enqueue in a transaction in ${engine}`, () => {
    test('what is enqueued waits for the time that its handler reads in it', async () => {
      await using place = await open();
      await using database = await openDatabase(place.url);
      await using running = await serve(database, { runAt: '/data/at', priority: '/data/level' });
      await using own = await place.connect();
      const at = Math.floor(Date.now() / 1_000) * 1_000 + 3_600_000;
      const later = await own.enqueue({ event: 'e', data: { at: new Date(at).toISOString(), level: 3 } });
      await own.enqueue({ event: 'e', data: { at: 1 } });
      await waitFor('the one that is due', () => running.got.length === 1);
      const found = await database.deliveries.find(later);
      assert.deepEqual([found?.status, found?.plannedAt], ['pending', at]);
    });

    test('a rollback leaves nothing, a commit is handled, in the order of the calls', async () => {
      await using place = await open();
      await using database = await openDatabase(place.url);
      await using service = await serve(database);
      await using own = await place.connect();
      await own.sql('CREATE TABLE orders (id INTEGER)');
      await own.sql('BEGIN');
      await own.sql('INSERT INTO orders VALUES (1)');
      await own.enqueue({ event: 'e', data: 'rolled back' });
      assert.deepEqual(await database.inbox.enqueued.oldest(), [], 'not visible yet');
      await own.sql('ROLLBACK');

      await own.sql('BEGIN');
      await own.sql('INSERT INTO orders VALUES (2)');
      const ids = [];
      for (let i = 0; i < 3; i++) ids.push(await own.enqueue({ event: 'e', data: { i, '\0': '\u0010' } }));
      await own.sql('COMMIT');
      await waitFor('all three', () => service.got.length === 3);
      assert.deepEqual(
        service.got.map(({ id }) => id),
        ids,
      );
      assert.deepEqual(service.got[1]?.data, { i: 1, '\0': '\u0010' });
      assert.equal(service.got[0]?.source, 'portico:enqueue');
      const { items } = await database.deliveries.list({}, 9);
      assert.equal(items.length, 3);
      assert.deepEqual(await database.inbox.enqueued.oldest(), [], 'taken in');
    });

    test('what was enqueued without a service is handled by the next one, a repeat once', async () => {
      await using place = await open();
      await (await openDatabase(place.url))[Symbol.asyncDispose]();
      {
        await using own = await place.connect();
        for (const dedupKey of ['k\0', 'k\0', undefined]) await own.enqueue({ event: 'e', dedupKey });
        await own.enqueue({ event: 'nobody handles it' });
      }
      await using database = await openDatabase(place.url);
      await using service = await serve(database);
      await waitFor('both', () => service.got.length === 2);
      const unhandled = () => database.deliveries.list({ status: 'unhandled' }, 9);
      await waitFor('the other one', async () => (await unhandled()).items.length === 1);
      assert.equal((await database.deliveries.list({}, 9)).items.length, 3);
    });

    test('what one has taken another one cannot take', async () => {
      await using place = await open();
      await using first = await openDatabase(place.url);
      await using second = await openDatabase(place.url);
      await using own = await place.connect();
      const ids = [await own.enqueue({ event: 'e' }), await own.enqueue({ event: 'e' })];
      const found = await first.inbox.enqueued.oldest();
      const taken = found.map(({ seq, ...rest }) => {
        const stored = { ...rest, dataPointer: '/data', contentType: null };
        return { seq, delivery: { ...stored, jobs: [{ target: 't', orderKey: null }] } };
      });
      assert.deepEqual(await first.inbox.enqueued.take(taken.slice(0, 1)), ['stored']);
      assert.deepEqual(await second.inbox.enqueued.take(taken), [undefined, 'stored']);
      const { items } = await first.deliveries.list({}, 9);
      assert.deepEqual(items.map(({ id }) => id).toReversed(), ids);
      assert.equal((await first.inbox.backlog()).open, 2);
    });

    test('of several services one takes each in', async () => {
      await using place = await open();
      await using first = await openDatabase(place.url);
      await using second = await openDatabase(place.url);
      await using own = await place.connect();
      await own.sql('BEGIN');
      for (let i = 0; i < 150; i++) await own.enqueue({ event: 'e', data: i });
      await own.sql('COMMIT');
      await using one = await serve(first);
      await using other = await serve(second);
      const all = () => [...one.got, ...other.got].map(({ data }) => data as number);
      await waitFor('all of them', () => all().length >= 150);
      assert.deepEqual(
        all().toSorted((a, b) => a - b),
        Array.from({ length: 150 }, (_, i) => i),
      );
    });
  });
}

test('on PostgreSQL the commit wakes the services', { skip: withoutPostgres ?? false }, async () => {
  await using place = await postgres();
  await using database = await openDatabase(place.url);
  await using own = await place.connect();
  const committed = Promise.withResolvers<boolean>();
  let isCommitted = false;
  using _ = database.inbox.enqueued.onEnqueued?.(() => committed.resolve(isCommitted));
  await own.sql('BEGIN');
  await own.enqueue({ event: 'e' });
  assert.deepEqual(await database.inbox.enqueued.oldest(), []);
  isCommitted = true;
  await own.sql('COMMIT');
  assert.equal(await committed.promise, true);
});
