import type { FastifyInstance } from 'fastify';
import * as v from 'valibot';
import { isRecord } from '../../core/json.ts';
import type { DeliveryHandler } from '../../inbox/delivery.ts';
import { SCOPE } from '../options/access.ts';
import { type Door, doors } from '../options/options.ts';
import { expectedPassword, isPassword, secretsSchema } from '../secret-file.ts';
import {
  type ConfiguredCheck,
  type CustomEndpoint,
  type HealthGroupOptions,
  readEndpoints,
  readHealthChecks,
  readHealthGroups,
} from './endpoints.ts';
import {
  countField,
  functionField,
  type Given,
  itemsOf,
  namedOf,
  readObject,
  textField,
  toggleField,
  type Written,
  wholeField,
} from './fields.ts';
import { type GraphqlCode, readContext } from './graphql.ts';
import {
  checkFilter,
  deadAlertSchema,
  filterField,
  forwardSchema,
  orderField,
  priorityField,
  runAtField,
  scheduleSchema,
  sourceSchemas,
} from './webhook.ts';

/** The code that a configuration module adds. */
export interface ConfigCode {
  readonly healthChecks: ReadonlyMap<string, ConfiguredCheck>;
  readonly healthGroups: ReadonlyMap<string, HealthGroupOptions>;
  readonly endpoints: readonly CustomEndpoint[];
  readonly users: readonly ManagementUser[];
  /** By event. */
  readonly handlers: ReadonlyMap<string, HandlerSpec>;
  /** Data that the webhook door validates when it reads them. */
  readonly sources: unknown;
  readonly forward: unknown;
  readonly alerts: unknown;
  readonly schedules: unknown;
  /** Tokens for REST and GraphQL; data, not validated yet. */
  readonly apiTokens: unknown;
  readonly graphql: GraphqlCode;
  readonly setups: DoorSetups;
}

/** The keys besides settings, with their documentation. JSON files may contain those with `data`. */
export const codeKeys = [
  {
    key: 'api.tokens',
    data: (): v.GenericSchema => v.record(v.string(), apiTokenSchema),
    shape: '{ [name]: { secret, scopes: [scope], expires } }',
    description:
      'Tokens for REST and GraphQL by name. `secret` is a text, `{ env }` or `{ file }`, or several of them during a rotation; Portico reloads changed files. `expires` is a date. Plain data, so also allowed in .json.',
  },
  {
    key: 'graphql.typeDefs',
    shape: 'string, DocumentNode or an array of them',
    description:
      'GraphQL type definitions. They extend the built-in schema (`extend type Query { ... }`), or replace it if they have a `type Query` or a `schema`.',
  },
  {
    key: 'graphql.resolvers',
    shape: '{ [type]: { [field]: (parent, args, context, info) => value } }',
    description:
      'Resolvers by type and field; `{ subscribe, resolve }` for a subscription, `__resolveType` and `__isTypeOf` for abstract types, a GraphQLScalarType or its functions for a scalar, the internal values for an enum.',
  },
  {
    key: 'graphql.context',
    shape: '(request, { users }) => context',
    description:
      'Creates the context of the resolvers for a request; by default `{ users }`, the users of the door.',
  },
  {
    key: 'graphql.schema',
    shape: 'GraphQLSchema',
    description: 'A complete GraphQL schema, in place of `typeDefs` and `resolvers`.',
  },
  ...doors.map(
    (door) =>
      ({
        key: `${door}.setup`,
        shape: '(app) => void',
        description: `Adds routes, hooks and plugins to the ${door} door: \`app\` is its Fastify instance. It may be asynchronous; the door listens when it has ended.`,
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
      'Custom management endpoints. GET sends the text or JSON that `read` returns, POST calls `write`, DELETE calls `delete`. `path: "name"` and `query: ["name"]` declare parameters, passed as `{ path, query, body }`; "?" marks an optional name.',
  },
  {
    key: 'management.users',
    shape: '[{ user, password, roles: [role] }]',
    description: 'Users of the management endpoints, in addition to or instead of management.user.',
  },
  {
    key: 'webhook.handlers',
    shape: '{ [event]: (delivery, { signal, log }) => void }',
    description:
      "Handlers by event, under the sender's name or Portico's. Instead of a function: `{ handler, when, order, concurrency, timeout, attempts, isolate }`. `when` is a condition or function that selects deliveries; `order` is a JSON pointer or function that gives a key, whose deliveries are handled one at a time; times are in milliseconds; `isolate: true` runs the handler in a worker thread.",
  },
  {
    key: 'webhook.sources',
    data: (): v.GenericSchema => v.record(v.string(), v.union(Object.values(sourceSchemas))),
    shape: '{ [name]: { scheme, secrets, ... } }',
    description:
      'Signed senders, each at `/webhook/<name>`. `scheme` is standard, github, stripe, slack, hmac or token. Plain data, so also allowed in .json.',
  },
  {
    key: 'webhook.forward',
    data: (): v.GenericSchema => v.record(v.string(), v.union([v.string(), forwardSchema])),
    shape: '{ [name]: { url, secrets, events, when, order, transform, rate, allowPrivate } }',
    description:
      'Addresses to which Portico forwards deliveries, signed with Standard Webhooks if they have secrets: those of `events` that `when` selects, changed by `transform`, at most at a `rate` such as `10/s`. Plain data, so also allowed in .json; functions need a module.',
  },
  {
    key: 'webhook.alerts',
    data: (): v.GenericSchema => v.object({ dead: v.optional(v.union([v.string(), deadAlertSchema])) }),
    shape: '{ dead: { url, secrets, allowPrivate, interval, threshold, down } }',
    description:
      'Alerts about dead deliveries, sent like forwards: at most one per handler or forward address within `interval` milliseconds. Above `threshold` dead jobs the health check says so, and is DOWN with `down: true`. Plain data, so also allowed in .json.',
  },
  {
    key: 'webhook.schedules',
    data: (): v.GenericSchema => v.record(v.string(), v.union([v.string(), scheduleSchema])),
    shape: "{ [name]: '0 3 * * *' }",
    description:
      'Scheduled deliveries by name. Instead of an expression: `{ cron, timezone, event, data, grace }`. The default time zone is UTC, the default event the name; `grace` is how late a missed delivery may still be stored, in milliseconds. Plain data, so also allowed in .json.',
  },
] as const;

/** A key that only a module can contain. */
export type CodeKey = (typeof codeKeys)[number]['key'];

/** Adds routes, hooks and plugins to the Fastify instance of a door, before the door's own routes. */
export type DoorSetup = (app: FastifyInstance) => unknown;

/** The setups by door. */
type DoorSetups = Readonly<Partial<Record<Door, DoorSetup>>>;

/** Reads the `setup` of each door. */
function readSetups(at: (key: `${Door}.setup`) => Given, problems: string[]): DoorSetups {
  const read: Partial<Record<Door, DoorSetup>> = {};
  for (const door of doors) {
    const { value, path } = at(`${door}.setup`);
    if (isSetup(value)) read[door] = value;
    else if (value !== undefined) problems.push(`${path} must be a function`);
  }
  return read;
}

function isSetup(value: unknown): value is DoorSetup {
  return typeof value === 'function';
}

/**
 * Reads the code of the configuration module `name`. Appends one line per error to `problems`, with its path.
 */
export function readModuleCode(
  code: ReadonlyMap<CodeKey, unknown>,
  name: string,
  problems: string[],
): ConfigCode {
  const at = (key: CodeKey) => ({ value: code.get(key), path: `${name}: ${key}` });
  const checks = at('management.healthChecks');
  return {
    healthChecks: readHealthChecks(checks, problems),
    healthGroups: readHealthGroups(at('management.healthGroups'), checks, problems),
    endpoints: readEndpoints(at('management.endpoints'), problems),
    users: readUsers(at('management.users'), problems),
    apiTokens: code.get('api.tokens'),
    sources: code.get('webhook.sources'),
    forward: code.get('webhook.forward'),
    alerts: code.get('webhook.alerts'),
    schedules: code.get('webhook.schedules'),
    handlers: readHandlers(at('webhook.handlers'), problems),
    graphql: {
      typeDefs: code.get('graphql.typeDefs'),
      resolvers: code.get('graphql.resolvers'),
      schema: code.get('graphql.schema'),
      context: readContext(at('graphql.context'), problems),
    },
    setups: readSetups(at, problems),
  };
}

const handlerSchema = v.object(
  {
    handler: functionField<DeliveryHandler>(),
    /** Maximum concurrent deliveries. */
    concurrency: v.optional(countField),
    /** Timeout of an attempt, in milliseconds. */
    timeout: v.optional(countField),
    /** Maximum attempts before a delivery is dead. */
    attempts: v.optional(countField),
    /** Which deliveries of the event it handles. Default: all. */
    when: v.optional(filterField),
    /** Whether it runs in a worker thread; only handlers of a configuration module can. */
    isolate: v.optional(toggleField),
    order: v.optional(orderField),
    priority: v.optional(priorityField),
    runAt: v.optional(runAtField),
  },
  'must be a function, or an object with a function as its "handler"',
);

/** A handler with its own limits; they default to the options of the webhook door. */
export type HandlerSpec = Written<typeof handlerSchema>;

/** Reads `webhook.handlers`: for each event a function, or an object with a function and its limits. */
export function readHandlers(given: Given, problems: string[]): ReadonlyMap<string, HandlerSpec> {
  const read = namedOf(given, 'functions', problems).flatMap((entry) => {
    const value = typeof entry.value === 'function' ? { handler: entry.value } : entry.value;
    const spec = readObject(handlerSchema, { ...entry, value }, problems);
    checkFilter(entry, problems);
    return spec === undefined ? [] : [[entry.name, spec] as const];
  });
  return new Map(read);
}

const PASSWORD = `must be ${expectedPassword}`;
const ROLES = 'must be an array of role names';

const userSchema = v.object(
  {
    user: textField(/^[^:\p{Cc}]+$/u, 'must be a text without ":" and control characters, and not empty'),
    password: v.pipe(v.string(PASSWORD), v.check(isPassword, PASSWORD)),
    roles: wholeField(v.array(textField(/^\P{Cc}+$/u, ROLES)), ROLES),
  },
  'must be an object with user, password, roles',
);

/** A user who may log in to the management endpoints. */
export type ManagementUser = Written<typeof userSchema>;

/** Reads `management.users`: an array with one entry per user. */
function readUsers(given: Given, problems: string[]): readonly ManagementUser[] {
  const items = itemsOf(given, problems);
  const users = items.flatMap((item) => readObject(userSchema, item, problems) ?? []);
  const names = items.map(({ value }) => (isRecord(value) ? value.user : undefined));
  for (const [index, { path }] of items.entries()) {
    const name = names[index];
    if (typeof name !== 'string' || names.indexOf(name) === index) continue;
    problems.push(`${path}.user is a duplicate; give every user one entry with all roles`);
  }
  return users;
}

const SCOPES = 'must be an array of scopes, like ["users:read"]';
const EXPIRES = 'must be a date like 2027-01-31, or a moment like 2027-01-31T12:00:00Z';
const MOMENT = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?Z)?$/;

/** A moment, in milliseconds since the epoch. A date means its beginning in UTC. */
const momentField = v.pipe(
  v.string(EXPIRES),
  v.check((text) => MOMENT.test(text) && isMoment(text), EXPIRES),
  v.transform((text) => Date.parse(text)),
);

/** Needed because Date.parse reads 31 February as a day in March. */
function isMoment(text: string): boolean {
  const at = Date.parse(text);
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(text.slice(0, 10));
}

export const apiTokenSchema = v.object(
  {
    /** Each of these is the token, so that it can be rotated. */
    secret: secretsSchema,
    scopes: wholeField(v.array(textField(SCOPE, SCOPES)), SCOPES),
    /** Expiry. Default: never. */
    expires: v.optional(momentField),
  },
  'must be an object with secret, scopes',
);

/** A token in the configuration, as data. */
type ApiTokenConfig = Written<typeof apiTokenSchema>;

/** The tokens by name. */
export type ApiTokensConfig = Readonly<Record<string, ApiTokenConfig>>;
