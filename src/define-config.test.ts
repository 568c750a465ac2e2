import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readModuleCode } from './app/load-config.ts';
import { readModuleSettings } from './config/module.ts';
import { defineConfig, type PorticoConfig } from './define-config.ts';

test('a configuration comes back as it was given', () => {
  const config: PorticoConfig = {
    host: '0.0.0.0',
    interfaces: ['rest', 'webhook'],
    database: { url: process.env.NOWHERE_SET },
    graphql: {
      users: 'database',
      typeDefs: ['extend type Query { me: User mine(first: Int): [User] size: Size }'],
      resolvers: {
        Query: {
          me: (_parent, _args, { users }) => users.byId('1'),
          mine: async (_parent, { first }: { readonly first?: number }, { users }) => [users, first],
          size: { resolve: () => 1 },
        },
        User: { __isTypeOf: (value: { readonly id: string }) => value.id !== '' },
        Size: { SMALL: 1, BIG: 'big' },
        Day: { serialize: String, parseValue: Number },
        Subscription: { ticks: { subscribe: async function* () {}, resolve: (event: number) => event } },
      },
      setup: (app) => app.get('/mine', () => 'mine'),
    },
    rest: { setup: async (app) => void (await app.register(async () => {})) },
    management: {
      basePath: '/ops',
      include: '*',
      healthChecks: {
        disk: async (signal) => (signal.aborted ? 1 : 0),
        mail: { check: () => ({ status: 'UNKNOWN' }), timeout: 500, ttl: 1_000, critical: false },
      },
      healthGroups: { ops: { include: ['disk'], exclude: [], showDetails: 'always' } },
      endpoints: [
        { id: 'motd', read: () => 'hello' },
        {
          id: 'features',
          path: 'name?',
          query: ['since'],
          read: async ({ path, query }) => ({ name: path.name?.trim(), since: query.since }),
          write: ({ body }) => void body,
          delete: ({ path }) => void path.name,
        },
      ],
      springBootAdmin: { url: 'http://sba', jvmMetrics: false, name: undefined },
      users: [{ user: 'ops', password: 'p', roles: ['ADMIN'] }],
    },
    webhook: {
      secret: ['a', 'b'],
      handlers: {
        async new_commit(delivery, { signal, log }) {
          log.info({ id: delivery.id, aborted: signal.aborted }, 'commit');
        },
        paid: { handler: (delivery) => void delivery.id, attempts: 3, order: undefined },
        issues: {
          handler: () => {},
          when: {
            any: [
              { pointer: '/action', in: ['opened', null] as const },
              { not: { pointer: '/n', above: 1 } },
            ],
          },
          order: ({ source, data }) => [source, data],
        },
      },
      sources: {
        shop: { scheme: 'hmac', secrets: ['a', { env: 'B' }] as const, header: 'x', event: { header: 'y' } },
        slack: { scheme: 'slack', secrets: { file: '/run/slack' }, tolerance: 0, dedup: false },
      },
      forward: {
        all: 'https://a.example',
        some: { url: 'https://b.example', events: ['paid'] as const, rate: '10/s', order: '/data/id' },
        picked: {
          url: 'https://c.example',
          when: ({ event, receivedAt }) => event !== 'paid' && receivedAt.getTime() > 0,
          transform: { body: { id: '/data/id' }, headers: { 'x-event': '{event}' } },
          rate: { limit: '100/m', burst: 3 },
        },
        made: {
          url: 'https://d.example',
          transform: async ({ rawBody, attempt }, { signal }) =>
            signal.aborted ? {} : { body: rawBody.subarray(attempt), headers: { 'x-a': 'b' } },
        },
      },
    },
    log: { level: 'debug' },
    shutdown: { preStopDelay: 0 },
  };
  assert.equal(defineConfig(config), config);
});

test('resolvers know the context that is made', () => {
  const config = defineConfig({
    graphql: {
      context: async (request, { users }) => ({ who: request.ip, users }),
      resolvers: { Query: { who: (_parent, _args, { who }) => who.toUpperCase() } },
    },
  });
  assert.equal(typeof config.graphql?.context, 'function');
  defineConfig({
    graphql: {
      context: () => ({ who: 'me' }),
      // @ts-expect-error: the context has no such member
      resolvers: { Query: { who: (_parent, _args, { whom }) => whom } },
    },
  });
});

/** Not one of these compiles. */
const mistakes: readonly PorticoConfig[] = [
  // @ts-expect-error: no such section
  { mangement: {} },
  // @ts-expect-error: no such option
  { rest: { prot: 1 } },
  // @ts-expect-error: a port is a number
  { rest: { port: '9000' } },
  // @ts-expect-error: no such level
  { log: { level: 'loud' } },
  // @ts-expect-error: no such door
  { interfaces: ['rst'] },
  // @ts-expect-error: a context is made by a function
  { graphql: { context: {} } },
  // @ts-expect-error: a setup is a function
  { rest: { setup: {} } },
  // @ts-expect-error: a check is a function
  { management: { healthChecks: { disk: 1 } } },
  // @ts-expect-error: a group names its members
  { management: { healthGroups: { ops: {} } } },
  // @ts-expect-error: an endpoint has an operation
  { management: { endpoints: [{ id: 'motd' }] } },
  // @ts-expect-error: a segment is named by a text
  { management: { endpoints: [{ id: 'motd', read: () => '', path: 1 }] } },
  // @ts-expect-error: no such option in the inner section
  { management: { springBootAdmin: { ulr: 'http://sba' } } },
  // @ts-expect-error: the inner section is an object
  { management: { springBootAdmin: 'http://sba' } },
  // @ts-expect-error: a condition compares with a scalar
  { webhook: { handlers: { a: { handler: () => {}, when: { pointer: '/a', is: {} } } } } },
  // @ts-expect-error: no such test
  { webhook: { handlers: { a: { handler: () => {}, when: { pointer: '/a', is: 1, matches: 'b' } } } } },
  // @ts-expect-error: an order is a pointer or a function
  { webhook: { handlers: { a: { handler: () => {}, order: 1 } } } },
  // @ts-expect-error: a user has roles
  { management: { users: [{ user: 'a', password: 'b' }] } },
];

test('what the compiler refuses is refused at the start too', () => {
  for (const mistake of mistakes) {
    const reading = readModuleSettings({ ...mistake }, 'portico.config.ts');
    const problems = [...reading.problems];
    readModuleCode(reading.code, 'portico.config.ts', problems);
    assert.equal(problems.length, 1, JSON.stringify(mistake));
  }
});
