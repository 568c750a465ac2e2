import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fastify from 'fastify';
import {
  GraphQLError,
  GraphQLInt,
  GraphQLNonNull,
  GraphQLObjectType,
  GraphQLSchema,
  GraphQLString,
} from 'graphql';
import { graphql } from '../../src/graphql/graphql.ts';
import { captureLog } from '../support/log-capture.ts';
import { ask } from './support/door.ts';

const SECRET = 'postgres://admin:hunter2@db';
const fail = (error: unknown) => {
  throw error;
};

const schema = new GraphQLSchema({
  query: new GraphQLObjectType({
    name: 'Query',
    fields: {
      hidden: { type: GraphQLString, resolve: () => fail(new Error(SECRET)) },
      later: { type: GraphQLString, resolve: async () => fail(new Error(SECRET)) },
      text: { type: GraphQLString, resolve: () => fail(SECRET) },
      wrong: { type: GraphQLInt, resolve: () => SECRET },
      missing: { type: new GraphQLNonNull(GraphQLString), resolve: () => null },
      shown: {
        type: GraphQLString,
        resolve: () => fail(new GraphQLError('Ask again', { extensions: { code: 'BUSY' } })),
      },
      context: { type: GraphQLString, resolve: (_root, _args, context) => String(context) },
    },
  }),
  subscription: new GraphQLObjectType({
    name: 'Subscription',
    fields: {
      ticks: {
        type: GraphQLString,
        async *subscribe() {
          yield 1;
          yield 2;
        },
        resolve: (tick) => (tick === 1 ? 'one' : fail(new Error(SECRET))),
      },
      refused: { type: GraphQLString, subscribe: () => fail(new Error(SECRET)) },
    },
  }),
});

/** A Fastify application with the plugin; the client names its requests. */
async function start() {
  const log = captureLog();
  const app = fastify({
    requestIdHeader: 'x-request-id',
    logger: { level: 'error', stream: log.stream },
    // As the listeners of the service do it.
    childLoggerFactory: (logger) => logger,
  });
  app.register(graphql, { schema, path: '/', context: (request) => `request ${request.id}` });
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  return { url, log, [Symbol.asyncDispose]: () => app.close() };
}

describe('what resolvers throw', () => {
  for (const field of ['hidden', 'later', 'text', 'wrong', 'missing']) {
    test(`${field}: is hidden, logged with the request's id, and again when the document is remembered`, async () => {
      await using server = await start();
      for (const id of ['first', 'second', 'third']) {
        const { status, text, body } = await ask(server.url, `{ ${field} }`, { 'x-request-id': id });
        assert.equal(status, 200);
        assert.deepEqual(
          body.errors?.map(({ message, path }) => ({ message, path })),
          [{ message: 'Internal server error', path: [field] }],
        );
        assert.doesNotMatch(text, /hunter2|stack|\.ts:/);
        const entries = server.log.entries.filter(({ reqId }) => reqId === id);
        assert.equal(entries.length, 1);
        assert.equal(entries[0]?.msg, 'resolver failed');
        const logged = JSON.stringify(entries);
        assert.match(
          logged,
          field === 'missing' ? /non-nullable field Query\.missing/ : /hunter2|does not fit/,
        );
      }
    });
  }

  test('a GraphQLError is shown with its extensions, and no fault to be logged', async () => {
    await using server = await start();
    const { body } = await ask(server.url, '{ shown }');
    assert.equal(body.errors?.[0]?.message, 'Ask again');
    assert.deepEqual(body.errors[0].extensions, { code: 'BUSY' });
    assert.deepEqual(server.log.entries, []);
  });

  test('resolvers get the context that is made of the request', async () => {
    await using server = await start();
    const { body } = await ask(server.url, '{ context }', { 'x-request-id': 'mine' });
    assert.deepEqual(body.data, { context: 'request mine' });
  });

  test('errors in events, and of a stream that does not open, are hidden too', async () => {
    await using server = await start();
    const accept = { accept: 'text/event-stream', 'x-request-id': 'stream' };
    const { text } = await ask(server.url, 'subscription { ticks }', accept);
    assert.match(
      text,
      /^event: next\ndata: \{"data":\{"ticks":"one"\}\}\n\nevent: next\ndata: \{"errors":\[\{"message":"Internal server error"/,
    );
    assert.match(text, /event: complete\ndata: \n\n$/);
    const refused = await ask(server.url, 'subscription { refused }', accept);
    assert.match(refused.text, /^event: next\ndata: \{"errors":\[\{"message":"Internal server error"/);
    assert.doesNotMatch(text + refused.text, /hunter2/);
    assert.deepEqual(
      server.log.entries.map(({ reqId }) => reqId),
      ['stream', 'stream'],
    );
  });
});
