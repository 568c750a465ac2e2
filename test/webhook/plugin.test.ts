import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import Fastify from 'fastify';
import { GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';
import { type Database, openDatabase } from 'portico/database';
import { graphql } from 'portico/graphql';
import { HealthRegistry, Metrics, management } from 'portico/management';
import { backlogCheck, type Delivery, replayPlan, type WebhookOptions, webhook } from 'portico/webhook';
import { postgresUrl, withoutPostgres } from '../support/databases.ts';
import { captureLog } from '../support/log-capture.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

/** An application of a user's own, as the example has it. */
async function startApp(url: string, options: Omit<WebhookOptions, 'inbox'>) {
  const log = captureLog();
  const app = Fastify({ logger: { stream: log.stream } });
  const database = await openDatabase(url);
  app.addHook('onClose', () => database[Symbol.asyncDispose]());
  app.register(webhook, { inbox: database.inbox, ...options });
  return { app, database, log, post: poster(app), [Symbol.asyncDispose]: () => app.close() };
}

type App = ReturnType<typeof Fastify>;

function poster(app: App) {
  return async (body: string, headers: Record<string, string> = {}, url = '/webhook') => {
    const reply = await app.inject({ method: 'POST', url, headers, payload: Buffer.from(body) });
    return `${reply.statusCode} ${reply.body}`;
  };
}

const statuses = async ({ deliveries }: Database) =>
  (await deliveries.list({}, 100)).items.map(({ status }) => status);

const urls: Readonly<Record<string, (folder: string) => Promise<string>>> = {
  'an SQLite file': async (folder) => `sqlite:${join(folder, 'inbox.db')}`,
  ...(withoutPostgres === undefined && { PostgreSQL: () => postgresUrl() }),
};

for (const [engine, urlIn] of Object.entries(urls)) {
  describe(`the plugin on ${engine}`, () => {
    test('a delivery is handled; what a stop interrupts is handled after the next start', async () => {
      await using folder = await temporaryFolder();
      const url = await urlIn(folder.path);
      const handled: Delivery[] = [];
      const began = Promise.withResolvers<void>();
      await using first = await startApp(url, {
        stopTimeout: 1,
        handlers: {
          quick: (delivery) => void handled.push(delivery),
          slow: async () => {
            began.resolve();
            await new Promise(() => {});
          },
        },
      });
      assert.equal(await first.post('{"event":"quick","data":{"n":1}}'), '200 Webhook received');
      assert.equal(await first.post('{"event":"other"}'), '200 Webhook received');
      const { data, attempt, source } = await waitFor('it to be handled', () => handled[0]);
      assert.deepEqual({ data, attempt, source }, { data: { n: 1 }, attempt: 1, source: '' });
      assert.equal(await first.post('{"event":"slow","data":2}'), '200 Webhook received');
      await began.promise;
      await first.app.close();
      await assert.rejects(async () => first.database.inbox.backlog(), 'the database is closed too');

      const again: Delivery[] = [];
      await using second = await startApp(url, {
        handlers: { slow: (delivery) => void again.push(delivery) },
      });
      await second.app.ready();
      const taken = await waitFor('it to be taken up', () => again[0]);
      assert.deepEqual([taken.data, taken.attempt], [2, 1], 'a stop is no attempt');
      await waitFor(
        'it to be done',
        async () => (await statuses(second.database)).join() === 'done,unhandled,done',
      );
      assert.equal(handled.length, 1);
    });
  });
}

test('a close waits for the attempts under way and records how they ended', async () => {
  await using folder = await temporaryFolder();
  const url = `sqlite:${join(folder.path, 'inbox.db')}`;
  const began = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  await using first = await startApp(url, {
    handlers: {
      slow: () => {
        began.resolve();
        return end.promise;
      },
    },
  });
  await first.post('{"event":"slow"}');
  await began.promise;
  const closed = first.app.close();
  // Whoever does not wait has closed the database by then.
  setTimeout(end.resolve, 100);
  await closed;
  await using database = await openDatabase(url);
  assert.deepEqual(await statuses(database), ['done']);
});

test('without options: no handler, no secret, and what fails is in the log of the application', async () => {
  await using app = await startApp('sqlite::memory:', {
    attempts: 1,
    handlers: { bad: () => Promise.reject(new Error('no')) },
  });
  assert.equal(await app.post('{"event":"new_commit"}'), '200 Webhook received');
  await app.post('{"event":"bad"}');
  await waitFor('it to be dead', async () => (await statuses(app.database)).join() === 'dead,unhandled');
  const said = app.log.entries.map(({ msg }) => msg);
  assert.ok(said.includes('unhandled event') && said.includes('delivery dead'), said.join());
});

test('secrets that change count from the next request on; sources have their own', async () => {
  let secrets: readonly string[] = ['old'];
  await using app = await startApp('sqlite::memory:', {
    secrets: () => secrets,
    sources: { shop: { scheme: 'token', secrets: 'shop', header: 'x-shop' } },
  });
  assert.equal(await app.post('{}'), '401 Unauthorized');
  assert.equal(await app.post('{}', { 'x-webhook-token': 'old' }), '200 Webhook received');
  secrets = ['new'];
  assert.equal(await app.post('{}', { 'x-webhook-token': 'old' }), '401 Unauthorized');
  assert.equal(await app.post('{}', { 'x-webhook-token': 'new' }), '200 Webhook received');
  assert.equal(await app.post('{}', { 'x-shop': 'new' }, '/webhook/shop'), '401 Unauthorized');
  assert.equal(await app.post('{}', { 'x-shop': 'shop' }, '/webhook/shop'), '200 Webhook received');
});

test('options that make no door are named, all of them', async () => {
  await using database = openDatabase('sqlite::memory:');
  const bad = {
    inbox: database.inbox,
    attempts: 0,
    handlers: { a: 'text' },
    sources: { b: { scheme: 'nope', secrets: 'x' } },
    forward: { c: 'ftp://x' },
  } as unknown as WebhookOptions;
  const app = Fastify();
  app.register(webhook, bad);
  await assert.rejects(
    async () => app.ready(),
    (error: Error) => {
      for (const part of [
        'webhook.attempts',
        'webhook.handlers.a',
        'webhook.sources.b',
        'webhook.forward.c',
      ]) {
        assert.ok(error.message.includes(part), `${part}: ${error.message}`);
      }
      return true;
    },
  );
});

test('beside other doors, under a prefix, it answers for its own paths alone', async () => {
  await using database = openDatabase('sqlite::memory:');
  const app = Fastify();
  const metrics = new Metrics();
  app.get('/mine', () => 'mine');
  app.setNotFoundHandler((_request, reply) => reply.code(404).send('not mine'));
  const query = new GraphQLObjectType({ name: 'Query', fields: { a: { type: GraphQLString } } });
  app.register(async (scope) => scope.register(graphql, { schema: new GraphQLSchema({ query }) }), {
    prefix: '/api',
  });
  app.register(webhook, { prefix: '/hooks', inbox: database.inbox, metrics, handlers: { e: () => {} } });
  const ask = async (method: 'GET' | 'POST', url: string) => {
    const reply = await app.inject({ method, url, payload: '{"event":"e"}' });
    return `${reply.statusCode} ${reply.body}`;
  };
  assert.equal(await ask('POST', '/hooks/webhook'), '200 Webhook received');
  assert.equal(await ask('GET', '/hooks/webhook'), '405 Method Not Allowed');
  assert.equal(await ask('POST', '/hooks/webhook/none'), '404 Not Found');
  assert.equal(await ask('POST', '/webhook'), '404 not mine');
  assert.equal(await ask('GET', '/mine'), '200 mine');
  assert.ok(metrics.meter('webhook.deliveries') && metrics.meter('webhook.backlog'));
  await app.close();
  metrics[Symbol.dispose]();
});

test('the management plugin replays what is dead, by the plan of the options', async () => {
  let broken = true;
  const handlers = {
    paid: () => {
      if (broken) throw new Error('broken');
    },
  };
  await using door = await startApp('sqlite::memory:', { handlers, attempts: 1 });
  const { app, database } = door;
  app.register(management, {
    include: ['health', 'deliveries'],
    deliveries: { log: database.deliveries, plan: replayPlan({ handlers }) },
    access: { endpoints: new Map([['deliveries', 'unrestricted' as const]]) },
    health: new HealthRegistry([backlogCheck(database.inbox, { thresholdMs: 3_600_000 })]),
  });
  await door.post('{"event":"paid"}');
  await waitFor('it to be dead', async () => (await statuses(database)).join() === 'dead');
  broken = false;
  const id = (await database.deliveries.list({}, 1)).items[0]?.id;
  const reply = await app.inject({
    method: 'POST',
    url: `/actuator/deliveries/${id}`,
    payload: { action: 'replay' },
  });
  assert.equal(reply.statusCode, 204);
  await waitFor('it to be done', async () => (await statuses(database)).join() === 'done');
});
