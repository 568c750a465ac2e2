import assert from 'node:assert/strict';
import { test } from 'node:test';
import Fastify, { type FastifyInstance } from 'fastify';
import { buildSchema } from 'graphql';
import { graphql } from '../../src/graphql/graphql.ts';
import { rest } from '../../src/rest/rest.ts';
import { openDatabase } from '../../src/sql/open.ts';
import { webhook } from '../../src/webhook/webhook.ts';

type Register = (app: FastifyInstance) => Promise<AsyncDisposable | undefined>;

/** A path of each door, and what registers its plugin. */
const doors: Readonly<Record<string, Register>> = {
  '/users': async (app) => {
    const database = await openDatabase('sqlite::memory:');
    app.register(rest, { users: database.users });
    return database;
  },
  '/graphql': async (app) => {
    app.register(graphql, { schema: buildSchema('type Query { hello: String }') });
    return undefined;
  },
  '/webhook': async (app) => {
    const database = await openDatabase('sqlite::memory:');
    app.register(webhook, { inbox: database.inbox });
    return database;
  },
};

for (const [path, register] of Object.entries(doors)) {
  test(`an application that has ${path} already gets the plugin's failure from its start`, async () => {
    const app = Fastify();
    app.route({ method: ['GET', 'POST'], url: path, handler: () => 'mine' });
    await using _database = await register(app);
    await assert.rejects(async () => app.ready(), { code: 'FST_ERR_DUPLICATED_ROUTE' });
    await app.close();
  });
}
