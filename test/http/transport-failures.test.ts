import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createListener, type ErrorFormat } from '@portico/transport';
import type { FastifyInstance } from 'fastify';
import { buildSchema, GraphQLError, type GraphQLSchema } from 'graphql';
import { OutcomeUnknownError, StoreUnavailableError } from '../../src/core/errors.ts';
import { graphql } from '../../src/graphql/graphql.ts';
import { graphqlErrors } from '../../src/graphql/requests.ts';
import type { Appended, Inbox } from '../../src/inbox/inbox.ts';
import type { DatabaseUserStore } from '../../src/relations/user-stores.ts';
import { restErrors } from '../../src/rest/messages.ts';
import { rest } from '../../src/rest/rest.ts';
import { openLog } from '../../src/telemetry/log.ts';
import { RECEIVER_PATH, receiver, webhookErrors } from '../../src/webhook/receiver.ts';
import { type Asked, keepConnection } from '../support/connections.ts';
import { captureLog } from '../support/log-capture.ts';

const failures: readonly (() => unknown)[] = [
  () => new StoreUnavailableError('the disk is away'),
  () => new OutcomeUnknownError('nobody knows'),
  () => new TypeError('a bug'),
  () => new GraphQLError('on purpose', { extensions: { code: 'MINE' } }),
  () => 'a text',
];

/** Fails at once, or a turn later, in the way that `index` names. */
function fail(index: number, late: boolean): never | Promise<never> {
  const error = failures[index]?.();
  if (late) return nextTurn().then(() => Promise.reject(error));
  throw error;
}

/** The id says how: its last digit names the failure, 10 and above fail a turn later; 100 and above are there, late. */
const failing = {
  readJson: (id: number) =>
    id >= 100
      ? nextTurn().then(() => (id === 100 ? undefined : `{"id":${id}}`))
      : fail((id - 1) % 10, id > 10),
} as unknown as DatabaseUserStore;

function failingSchema(): GraphQLSchema {
  const schema = buildSchema('type Query { hello: String, fail(how: Int!, late: Boolean!): String! }');
  const { fail: field } = schema.getQueryType()?.getFields() ?? {};
  assert.ok(field);
  field.resolve = (_root, { how, late }: { readonly how: number; readonly late: boolean }) => fail(how, late);
  return schema;
}

async function open(closed: boolean, errors: ErrorFormat, door: (app: FastifyInstance) => void) {
  const log = captureLog();
  const listener = createListener({
    door: 'test',
    host: '127.0.0.1',
    port: 0,
    portHint: '--test-port',
    log: await openLog({ level: 'info', stream: log.stream }),
    errors,
  });
  listener.watchHooks();
  if (closed) listener.app.addHook('onRequest', (_request, _reply, done) => done());
  door(listener.app);
  const connection = await keepConnection(await listener.listen());
  // What the fast path answers is no request to Node.
  let slowly = 0;
  listener.app.server.on('request', () => slowly++);
  return {
    log,
    ask: connection.ask,
    slowly: () => slowly,
    async [Symbol.asyncDispose]() {
      connection[Symbol.dispose]();
      await listener[Symbol.asyncDispose]();
    },
  };
}

/** The reply, and what was logged with its id. */
async function tell({ ask, log }: Awaited<ReturnType<typeof open>>, path: string, init: Asked) {
  const { headers, ...reply } = await ask(path, init);
  const { 'x-request-id': id, date: _date, ...others } = headers;
  const logged = log.entries.filter(({ reqId }) => reqId === id);
  return {
    ...reply,
    headers: others,
    logged: logged.map(({ time: _time, reqId: _id, err, ...entry }) => ({ ...entry, err: firstLine(err) })),
  };
}

/** A stack tells which way the request went. */
function firstLine(error: unknown): unknown {
  const { stack, ...others } = Object(error) as { readonly stack?: unknown };
  return { ...others, stack: String(stack).split('\n', 1)[0] };
}

async function sameFailures(
  errors: ErrorFormat,
  door: (app: FastifyInstance) => void,
  requests: readonly (readonly [path: string, init: Asked])[],
  leastLogged: number = failures.length,
): Promise<void> {
  await using fast = await open(false, errors, door);
  await using fastify = await open(true, errors, door);
  let logged = 0;
  for (const [path, init] of requests) {
    const byFast = await tell(fast, path, init);
    assert.deepEqual(byFast, await tell(fastify, path, init), `${path} ${String(init.body)}`);
    logged += byFast.logged.length;
  }
  assert.ok(logged >= leastLogged, 'failures are logged');
  assert.equal(fast.slowly(), 0, 'all went by the fast path');
  assert.equal(fastify.slowly(), requests.length);
}

test('REST fails by the fast path as it does without it, and reads late alike', () =>
  sameFailures(
    restErrors,
    (app) => app.register(rest, { users: failing }),
    [1, 2, 3, 4, 5, 11, 12, 13, 14, 15, 100, 101].map((id) => [`/users/${id}`, {}]),
  ));

test('lists and creates fail by the fast path as they do without it', async () => {
  for (const late of [false, true]) {
    for (const how of failures.keys()) {
      const broken = { ...failing, page: () => fail(how, late), create: () => fail(how, true) };
      await sameFailures(
        restErrors,
        (app) => app.register(rest, { users: broken as unknown as DatabaseUserStore }),
        [
          ['/users', {}],
          ['/users', { method: 'POST', body: '{"name":"a","email":"a@b"}' }],
          ['/users', {}],
        ],
        1,
      );
    }
  }
});

test('GraphQL masks and logs by the fast path as it does without it', () =>
  sameFailures(
    graphqlErrors,
    (app) => app.register(graphql, { schema: failingSchema() }),
    [0, 1, 2, 3, 4].flatMap((how) =>
      [false, true].map((late) => {
        const query = '{hello fail(how:$how,late:$late)}'
          .replace('$how', `${how}`)
          .replace('$late', `${late}`);
        const headers = { 'content-type': 'application/json' };
        return ['/graphql', { method: 'POST', headers, body: JSON.stringify({ query }) }] as const;
      }),
    ),
  ));

test('a delivery that is not stored is refused by the fast path as it is without it', () => {
  const inbox = {} as unknown as Inbox;
  const work = {
    store: ({ event }: { readonly event: string | null }) =>
      fail(Number(event) % 10, Number(event) >= 10) as Promise<Appended>,
  };
  const limits = { maxBodyBytes: 1_000, maxBytesInFlight: 10_000 };
  const options = { inbox, work, refused() {}, secrets: () => [], sources: [] };
  return sameFailures(
    webhookErrors,
    (app) => app.register(receiver, { ...options, ...limits, prefix: RECEIVER_PATH }),
    [0, 1, 2, 3, 4, 10, 11, 12, 13, 14].map((how) => [
      '/webhook',
      { method: 'POST', body: JSON.stringify({ event: String(how) }) },
    ]),
  );
});
