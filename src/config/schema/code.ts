import type { FastifyInstance } from 'fastify';
import * as v from 'valibot';
import { isRecord } from '../../core/json.ts';
import type { DeliveryHandler } from '../../inbox/delivery.ts';
import { SCOPE } from '../options/access.ts';
import { type CodeKey, type Door, doors } from '../options/options.ts';
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

/** What the keys with data take, for the JSON Schema. */
export const dataSchemas: ReadonlyMap<CodeKey, () => v.GenericSchema> = new Map<
  CodeKey,
  () => v.GenericSchema
>([
  ['api.tokens', () => v.record(v.string(), apiTokenSchema)],
  ['webhook.sources', () => v.record(v.string(), v.union(Object.values(sourceSchemas)))],
  ['webhook.forward', () => v.record(v.string(), v.union([v.string(), forwardSchema]))],
  ['webhook.alerts', () => v.object({ dead: v.optional(v.union([v.string(), deadAlertSchema])) })],
  ['webhook.schedules', () => v.record(v.string(), v.union([v.string(), scheduleSchema]))],
]);

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
