import { doors } from '../options/door.ts';
import type { CustomEndpoint } from './custom-endpoint.ts';
import type { DoorSetups } from './door-setup.ts';
import type { GraphqlCode } from './graphql-code.ts';
import type { ConfiguredCheck, HealthGroupOptions } from './health-code.ts';
import type { ManagementUser } from './management-user.ts';
import type { HandlerSpec } from './module-handlers.ts';

/** The code that a configuration module adds. */
export interface ConfigCode {
  readonly healthChecks: ReadonlyMap<string, ConfiguredCheck>;
  readonly healthGroups: ReadonlyMap<string, HealthGroupOptions>;
  readonly endpoints: readonly CustomEndpoint[];
  readonly users: readonly ManagementUser[];
  /** By event. */
  readonly handlers: ReadonlyMap<string, HandlerSpec>;
  /** Data of the webhook door, not validated: it reads them itself. */
  readonly sources: unknown;
  readonly forward: unknown;
  readonly alerts: unknown;
  readonly schedules: unknown;
  /** Tokens for REST and GraphQL; data, not validated. */
  readonly apiTokens: unknown;
  readonly graphql: GraphqlCode;
  readonly setups: DoorSetups;
}

/** The keys that only a module can hold, with their documentation. */
export const codeKeys = [
  {
    key: 'api.tokens',
    shape: '{ [name]: { secret, scopes: [scope], expires } }',
    description:
      'Tokens for REST and GraphQL by name: `secret` is a text, `{ env }` or `{ file }`, or several of them while one is replaced; files are followed. `expires` is a date. Data, so also in .json.',
  },
  {
    key: 'graphql.typeDefs',
    shape: 'string, DocumentNode or an array of them',
    description:
      'GraphQL type definitions of your own. They extend the built-in schema (`extend type Query { ... }`), or are the whole schema when they have a `type Query` or a `schema`.',
  },
  {
    key: 'graphql.resolvers',
    shape: '{ [type]: { [field]: (parent, args, context, info) => value } }',
    description:
      'Resolvers by type and field; `{ subscribe, resolve }` for a subscription, `__resolveType` and `__isTypeOf` for abstract types, a GraphQLScalarType or its functions for a scalar, the inner values for an enum.',
  },
  {
    key: 'graphql.context',
    shape: '(request, { users }) => context',
    description: 'Context of the resolvers of a request; without it `{ users }`, the users of the door.',
  },
  {
    key: 'graphql.schema',
    shape: 'GraphQLSchema',
    description: 'Whole GraphQL schema, in place of `typeDefs` and `resolvers`.',
  },
  ...doors.map(
    (door) =>
      ({
        key: `${door}.setup`,
        shape: '(app) => void',
        description: `Routes, hooks and plugins of your own for the ${door} door: \`app\` is its Fastify instance. It may be asynchronous and ends before the door listens.`,
      }) as const,
  ),
  {
    key: 'management.healthChecks',
    shape: '{ [name]: (signal) => number }',
    description:
      'Health checks by name. 0 is healthy, any other number is an error code; a check may also return `{ status, details }`. `{ check, timeout, ttl, critical }` sets how it runs: times in milliseconds, `critical: false` keeps its status out of the overall health.',
  },
  {
    key: 'management.healthGroups',
    shape: '{ [name]: { include: [check], exclude, showDetails } }',
    description:
      'Health groups by name, read at `/health/<name>`; `*` stands for all checks. `liveness` and `readiness` are built in, also answer at `/livez` and `/readyz`, and can be replaced.',
  },
  {
    key: 'management.endpoints',
    shape: '[{ id, read: () => string }]',
    description:
      'Custom management endpoints; GET answers the text or JSON that `read` returns, POST calls `write`, DELETE calls `delete`. `path: "name"` and `query: ["name"]` declare the parameters they get as `{ path, query, body }`, with "?" after an optional name.',
  },
  {
    key: 'management.users',
    shape: '[{ user, password, roles: [role] }]',
    description: 'Users who may log in to the management endpoints, beside or instead of management.user.',
  },
  {
    key: 'webhook.handlers',
    shape: '{ [event]: (delivery, { signal, log }) => void }',
    description:
      "Handlers of deliveries, by the sender's own name of the event or by Portico's; or `{ handler, when, order, concurrency, timeout, attempts, isolate }`: `when` a condition or function that says which deliveries it handles, `order` a JSON pointer to the key, or a function that gives it, whose deliveries are handled one after the other, times in milliseconds, `isolate: true` for a worker thread.",
  },
  {
    key: 'webhook.sources',
    shape: '{ [name]: { scheme, secrets, ... } }',
    description:
      'Signed senders, each at `/webhook/<name>`: `scheme` is standard, github, stripe, slack, hmac or token. Data, so also in .json.',
  },
  {
    key: 'webhook.forward',
    shape: '{ [name]: { url, secrets, events, when, order, transform, rate, allowPrivate } }',
    description:
      'Addresses that Portico forwards deliveries to, signed with Standard Webhooks if they have secrets: those of `events` for which `when` holds, changed by `transform`, at most at a `rate` such as `10/s`. Data, so also in .json; functions need a module.',
  },
  {
    key: 'webhook.alerts',
    shape: '{ dead: { url, secrets, allowPrivate, interval, threshold, down } }',
    description:
      'Alerts about dead deliveries, sent as deliveries are forwarded: at most one per handler or forward address within `interval` milliseconds. With more than `threshold` dead jobs the health check says so, and is DOWN with `down: true`. Data, so also in .json.',
  },
  {
    key: 'webhook.schedules',
    shape: "{ [name]: '0 3 * * *' }",
    description:
      'Deliveries that Portico stores by itself, by name; or `{ cron, timezone, event, data, grace }`: the time zone is UTC by default, the event the name, `grace` how late a missed one may still come, in milliseconds. Data, so also in .json.',
  },
] as const;

/** The keys that hold data, which JSON files may hold too. */
export const dataKeys: ReadonlySet<CodeKey> = new Set<CodeKey>([
  'api.tokens',
  'webhook.sources',
  'webhook.forward',
  'webhook.alerts',
  'webhook.schedules',
]);

/** A key that only a module can hold. */
export type CodeKey = (typeof codeKeys)[number]['key'];
