import { dirname } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { KnownCaller } from '@portico/transport';
import type { FastifyInstance } from 'fastify';
import type { GraphQLSchema } from 'graphql';
import type { Audit } from '../access/audit.ts';
import type { BasicUser } from '../access/basic.ts';
import type { ApiTokensConfig } from '../access/config.ts';
import { openAccessPolicy } from '../access/open-policy.ts';
import type { AccessPolicy } from '../access/policy.ts';
import { rulesOf } from '../access/row-access.ts';
import { ConfigError } from '../config/load.ts';
import type { InfoPart } from '../config/options/management.ts';
import { type Door, type Settings, settingsOf } from '../config/options/options.ts';
import { effectiveOptions } from '../config/sources.ts';
import { readPackageInfo } from '../core/package-root.ts';
import type { KnownSecrets } from '../core/redaction.ts';
import { rowsFor } from '../graphql/callers/caller-rows.ts';
import type { ContextDetails, GraphqlContext } from '../graphql/config.ts';
import { graphql } from '../graphql/graphql.ts';
import { ownSchema, usersForCode } from '../graphql/own-schema.ts';
import { CodeStores } from '../graphql/relation-stores.ts';
import { relationResolvers, type ServedRelations } from '../graphql/relations/resolvers.ts';
import { relationsSchema, schemaProblems } from '../graphql/relations/schema.ts';
import { graphqlErrors } from '../graphql/requests.ts';
import { sdlOf, usersSchema } from '../graphql/users-schema.ts';
import { addFrontPage } from '../http/pages.ts';
import { backlogCheck } from '../inbox/health.ts';
import type { Deliveries } from '../inbox/operations.ts';
import { type ExposureRules, isExposed } from '../management/guard.ts';
import { management } from '../management/management.ts';
import { managementErrors, NOT_FOUND, refuse } from '../management/management-errors.ts';
import { maskSecrets } from '../management/masking.ts';
import type { ApiSources, WebhookEndpoints } from '../management/options.ts';
import type { SpringBootAdminOptions } from '../management/spring-boot-admin.ts';
import { LocalUserFeed } from '../relations/events.ts';
import { hasRules, type Relation, servesRelations, USERS } from '../relations/relation.ts';
import type { RowRules } from '../relations/rules/views.ts';
import { MemoryUserStore } from '../relations/user-stores.ts';
import { restErrorsWith } from '../rest/messages.ts';
import { rest } from '../rest/rest.ts';
import { SENDING_PATHS } from '../sending/config.ts';
import type { Database } from '../sql/database.ts';
import { databaseCheck, writerCheck } from '../sql/open.ts';
import {
  diskSpaceCheck,
  eventLoopCheck,
  type HealthIndicator,
  HealthRegistry,
  type HealthStatus,
  type OnChecked,
} from '../telemetry/health.ts';
import type { Loggers } from '../telemetry/loggers.ts';
import { ExchangeLog } from '../telemetry/request-stats.ts';
import { EventLoopWindows } from '../telemetry/runtime.ts';
import { auditRefusals } from './audit.ts';
import { readBuildInfo } from './build-info.ts';
import { consoleView, openHistory } from './console.ts';
import type { AppContext } from './context.ts';
import { accessOf, includeList } from './door-security.ts';
import type { Config, ModuleCheck } from './load-config.ts';
import { replayPlanOf, webhookSettings } from './webhook-door.ts';

/** Wires the GraphQL door over users in memory, or over those of the database. Throws ConfigError. */
export function openGraphqlDoor(context: AppContext): void {
  const { config, metrics, database, listener, apis, api } = context;
  const { settings, code, file } = config;
  const options = settingsOf(settings, 'graphql');
  const rules = servesRelations(config.relations) ? rulesOf(byName(config.relations), api) : undefined;
  const { users, userFeed } = options.users === 'memory' ? inMemory(options.maxUsers) : database();
  const problems: string[] = [];
  const name = file ?? 'configuration';
  const builtIn = withRelations(usersSchema(users, userFeed), config, name, problems, () =>
    servedRelations(context, rules),
  );
  const stores = servesRelations(config.relations) ? codeStores(context, rules) : undefined;
  const schema = ownSchema(code.graphql, builtIn, name, problems);
  if (problems.length > 0) throw new ConfigError(problems);
  apis.sdl = () => sdlOf(schema);
  const portico = { users: usersForCode(users, userFeed) };
  const own = stores && ((caller: KnownCaller | undefined) => ({ relations: stores.for(caller) }));
  const { context: contextOf } = code.graphql;
  const app = listener('graphql', graphqlErrors);
  app.register(graphql, {
    ...options,
    limits: options,
    schema,
    metrics,
    api,
    rules,
    context:
      contextOf &&
      ((request, details) => {
        const shown = { ...portico, ...own?.(details.caller as KnownCaller | undefined) } as GraphqlContext;
        return contextOf(request, withDetails(shown, details));
      }),
    contextValue: portico,
    callerContext: own,
  });
  addFrontPage(app, {
    title: 'Portico: GraphQL',
    about: 'The GraphQL door. In a browser the endpoint is an editor for queries.',
    paths: { [options.path]: 'Queries, mutations and subscriptions, by POST or GET.' },
  });
}

/**
 * The schema with the relations of a declaration, and with what it adds to users if the door serves those of the
 * database. Appends problems to `problems`. `served` returns the rows; without it the schema is only checked.
 */
function withRelations(
  schema: GraphQLSchema,
  config: Pick<Config, 'settings' | 'relations'>,
  name: string,
  problems: string[],
  served?: () => ServedRelations,
): GraphQLSchema {
  const extendsUsers = extendsUsersOf(config);
  if (!servesRelations(config.relations) && !extendsUsers) return schema;
  const relations = byName(config.relations);
  const before = problems.length;
  schemaProblems(relations, schema, { extendsUsers, problems, name });
  if (problems.length > before) return schema;
  return relationsSchema(schema, relations, relationResolvers(served?.() ?? { extendsUsers }));
}

/** Whether the users of the GraphQL door have what a declaration adds to them. */
function extendsUsersOf({ settings, relations }: Pick<Config, 'settings' | 'relations'>): boolean {
  return settings['graphql.users'] === 'database' && relations.some(({ name }) => name === USERS);
}

function byName(relations: readonly Relation[]): ReadonlyMap<string, Relation> {
  return new Map(relations.map((relation) => [relation.name, relation]));
}

function servedRelations(
  { config, database, relations, relationFeed, api }: AppContext,
  rules: RowRules | undefined,
): ServedRelations {
  const { settings } = config;
  const { users } = database();
  return {
    relations: byName(config.relations),
    extendsUsers: extendsUsersOf(config),
    rules,
    storeOf(name) {
      const store = name === USERS ? users.rows : relations.get(name);
      if (store === undefined) throw new Error(`There is no relation ${name}`);
      return store;
    },
    feed: relationFeed,
    cursorKey: () => users.lists.cursorKey(),
    maxValues: settings['limits.graphql.maxResultValues'],
    requireIfMatch: settings['rest.requireIfMatch'],
    policy: api,
    mutations: settings['limits.graphql.mutations'],
  };
}

/** The rows that resolvers of the configuration get. */
function codeStores(context: AppContext, rules: RowRules | undefined): CodeStores {
  const served = servedRelations(context, rules);
  return new CodeStores({ ...served, rowsFor: rowsFor(served), policy: context.api });
}

/** Creates the abort signal only if the context reads it. */
function withDetails(portico: GraphqlContext, details: ContextDetails): GraphqlContext & ContextDetails {
  return {
    ...portico,
    connectionParams: details.connectionParams,
    caller: details.caller,
    get abortSignal() {
      return details.abortSignal;
    },
  };
}

/**
 * Checks the schema of a configuration module, without any users. Relations alone are checked if the door is open: their
 * names in GraphQL matter to no other.
 */
export const checkSchema: ModuleCheck = ({ graphql: given }, name, _resolveSecret, problems, options) => {
  const hasCode = [given.typeDefs, given.resolvers, given.schema].some((each) => each !== undefined);
  if (!hasCode && !options.settings.interfaces.includes('graphql')) return;
  const { users, userFeed } = inMemory(0);
  const builtIn = usersSchema(users, userFeed);
  ownSchema(given, withRelations(builtIn, options, name, problems), name, problems);
};

function inMemory(maxUsers: number) {
  const userFeed = new LocalUserFeed();
  return { users: new MemoryUserStore(userFeed, maxUsers), userFeed };
}

/** Wires the REST door over the users of the database. */
export function openRestDoor({
  config,
  database,
  relations,
  relationFeed,
  listener,
  apis,
  api,
  sending,
}: AppContext): void {
  const { users, userFeed: feed } = database();
  const { users: userPaths, ...options } = settingsOf(config.settings, 'rest');
  const isStandard = userPaths === 'standard';
  const errors = restErrorsWith(
    new Set([
      ...relations.keys(),
      ...(isStandard ? [USERS] : []),
      ...(sending === undefined ? [] : SENDING_PATHS),
    ]),
  );
  listener('rest', errors).register(rest, {
    ...options,
    users,
    userPaths,
    relations,
    relationFeed,
    feed,
    api,
    sending,
  });
  const described = async () => {
    const { restApi } = await import('../rest/api/rest-api.ts');
    if (relations.size === 0 && users.rows === undefined) return [restApi('', api)];
    const { relationsApi, usersApi } = await import('../rest/api/relations-api.ts');
    const declared = Array.from(relations.values(), ({ relation }) => relation);
    const ofUsers = users.rows?.relation;
    if (isStandard && ofUsers !== undefined)
      return relationsApi([...declared, ofUsers], { prefix: '', policy: api });
    return [restApi('', api, usersApi(ofUsers)), ...relationsApi(declared, { prefix: '', policy: api })];
  };
  apis.doors.set('rest', async () => {
    if (sending === undefined) return described();
    const { sendingApi } = await import('../rest/api/sending-api.ts');
    return [...(await described()), ...sendingApi(api)];
  });
}

/** Wires the management door last: it shows the others. `webhookSecrets` are those of an open /webhook. */
export function openManagementDoor(context: AppContext, webhookSecrets?: () => readonly string[]): void {
  const { config, readiness, metrics, listener } = context;
  const { settings, code } = config;
  const app = listener('management', managementErrors);
  const basePath = settings['management.basePath'];
  // CONTRACT.md#authentication: at the root, every path belongs to the endpoints.
  if (basePath !== '/') addOutside(app, basePath);
  app.register(management, {
    ...managementViews(context, {
      include: includeList(config),
      exclude: settings['management.exclude'],
    }),
    console: consoleView(context, webhookSecrets),
    basePath,
    showValues: settings['management.showValues'],
    users: managementUsers(config),
    role: settings['management.role'],
    maxFailedLogins: settings['limits.management.maxFailedLogins'],
    ...packageInfo(settings['management.info']),
    health: new HealthRegistry(healthChecks(context), { onChecked: healthWatch(context) }),
    healthGroups: code.healthGroups,
    showDetails: settings['management.showDetails'],
    readiness,
    metrics,
    environment: { activeProfiles: settings.profiles, propertySources: config.sources },
    endpoints: code.endpoints,
    springBootAdmin: springBootAdmin(settings),
  });
}

/** Adds the routes outside the base path. */
function addOutside(app: FastifyInstance, basePath: string): void {
  app.setNotFoundHandler((request, reply) => refuse(NOT_FOUND, request, reply));
  addFrontPage(app, {
    title: 'Portico: management',
    about: 'The management door: health, metrics and the internals of the service.',
    paths: {
      [basePath]: 'The management endpoints.',
      '/livez': 'Whether the process is alive, for an orchestrator.',
      '/readyz': 'Whether it accepts requests, for a load balancer.',
    },
  });
}

function springBootAdmin(settings: Settings): SpringBootAdminOptions | undefined {
  const { url, ...options } = settingsOf(settings, 'management.springBootAdmin');
  return url === undefined ? undefined : { url, ...options };
}

/** The facts about the program that /info shows. */
function packageInfo(info: readonly InfoPart[]) {
  const { name, version } = readPackageInfo();
  const { time, git } = readBuildInfo();
  return { build: { name, artifact: name, version, time }, git, info };
}

/** The data that the management door shows, and the rules of exposure. */
function managementViews(context: AppContext, lists: Pick<ExposureRules, 'include' | 'exclude'>) {
  const { config, secrets, loggers, logTail, requestTail, doors } = context;
  const { settings } = config;
  const rules = { ...lists, access: accessOf(settings) };
  const hasConsole = isExposed('console', rules);
  return {
    ...rules,
    secrets,
    configuration: effectiveOptions(settings, config.sources),
    loggers,
    exchanges: isExposed('httpexchanges', rules) ? recordExchanges(context) : undefined,
    auditEvents: context.audit && context.openedDatabase()?.audit,
    audit: context.audit,
    deliveries: hasConsole || isExposed('deliveries', rules) ? viewDeliveries(context) : undefined,
    webhookEndpoints: viewEndpoints(context.sending),
    history: hasConsole || isExposed('history', rules) ? openHistory(context) : undefined,
    logTail,
    requests: requestTail,
    mappings: new Map(Array.from(doors, ([door, { routes }]) => [door, routes])),
    apis: apisOf(context),
    shutDown: () => context.requestStop(),
  };
}

function apisOf({ apis, doors }: AppContext): ApiSources {
  const portOf = (door: Door) => {
    const address = doors.get(door)?.app.server.address();
    return typeof address === 'object' && address !== null ? address.port : undefined;
  };
  return {
    doors: new Map(Array.from(apis.doors, ([door, api]) => [door, { api, port: () => portOf(door) }])),
    sdl: () => apis.sdl?.(),
  };
}

/** Only if the endpoint is exposed: recording costs time at every request. */
function recordExchanges({ doors }: AppContext): ExchangeLog {
  const log = new ExchangeLog();
  for (const { stats } of doors.values()) stats.read((exchange) => log.record(exchange));
  return log;
}

/** Undefined if no door has opened the database. */
function viewDeliveries({ config, openedDatabase }: AppContext): Deliveries | undefined {
  const database = openedDatabase();
  return database && { log: database.deliveries, plan: replayPlanOf(config) };
}

/** Undefined if the service sends nothing to customers. */
function viewEndpoints(open: AppContext['sending']): WebhookEndpoints | undefined {
  if (open === undefined) return undefined;
  const { sending, linkOf } = open;
  return { sending, portalLink: linkOf && ((tenant) => linkOf(tenant, {})) };
}

interface ApiParts {
  readonly loggers: Loggers;
  readonly secrets: KnownSecrets;
  /** The database whose stored tokens grant access too; undefined if no door needs a database. */
  readonly database: Database | undefined;
  readonly audit: Audit | undefined;
}

/** Opens the policy of REST and GraphQL, if the configuration asks for one. Rejects with ConfigError. */
export async function openApi(
  config: Config,
  { loggers, secrets, database, audit }: ApiParts,
): Promise<AccessPolicy | undefined> {
  const { settings, code, file, resolveSecret } = config;
  return openAccessPolicy(
    {
      ...settingsOf(settings, 'api'),
      tokens: code.apiTokens as ApiTokensConfig | undefined,
      users: managementUsers(config),
      stored: database?.apiTokens,
      writeDelay: database?.writeDelay,
    },
    {
      resolve: resolveSecret,
      name: file ?? 'configuration',
      hasRules: config.relations.some(hasRules),
      // Created on first use: an unused logger would appear in the list of loggers.
      get log() {
        return loggers.child('api');
      },
      onSecrets: (found) => secrets.add(found),
      // REST records its refusals by their status; GraphQL answers 200.
      onRefused: audit && auditRefusals(audit, 'graphql'),
    },
  );
}

/** The users of the management door; a configured one has the required role (CONTRACT.md#authentication). */
function managementUsers({ settings, code }: Config): readonly BasicUser[] {
  const { 'management.user': user, 'management.password': password, 'management.role': role } = settings;
  if (user === undefined || password === undefined) return code.users;
  return [{ user, password, roles: role === undefined ? [] : [role] }, ...code.users];
}

/**
 * Default time to live of the results of built-in checks, in milliseconds. A stale result is served while the
 * check runs, for up to ten times as long.
 */
const TTL = 1_000;

/** Window of the event loop's delay, in milliseconds; the check looks at the last one to two windows. */
const DELAY_WINDOW = 10_000;

/** The checks of the resources that this process uses, and those of the configuration. */
function healthChecks(context: AppContext): readonly HealthIndicator[] {
  const { settings, code } = context.config;
  const database = context.openedDatabase();
  const delay = context.onStop(new EventLoopWindows(DELAY_WINDOW));
  const builtIn = [
    ...(database === undefined ? [] : storeChecks(database)),
    diskSpaceCheck({
      path: dataFolder(settings['database.url'], database !== undefined),
      thresholdBytes: settings['limits.management.diskThresholdBytes'],
    }),
    ...(context.backups === undefined ? [] : [context.backups.health]),
    eventLoopCheck(delay, settings['limits.management.eventLoopThreshold']),
    ...(database === undefined || !settings.interfaces.includes('webhook')
      ? []
      : [backlogOf(database, context.config)]),
    ...unrecordedCheck(context.config),
  ];
  const own = Array.from(code.healthChecks, ([name, { check, timeout, ttl, critical }]) => {
    return { name, check, timeoutMs: timeout, ttlMs: ttl, critical };
  });
  return [...builtIn.map((check) => ({ ttlMs: TTL, ...check })), ...own];
}

/** Names the relations without a feed: nothing records the changes of another program's tables. */
function unrecordedCheck({ relations }: Config): readonly HealthIndicator[] {
  const withoutChanges = relations.flatMap(({ name, existing }) => (existing === undefined ? [] : [name]));
  if (withoutChanges.length === 0) return [];
  return [{ name: 'relations', check: () => ({ status: 'UP', details: { withoutChanges } }) }];
}

function backlogOf({ inbox }: Database, config: Config): HealthIndicator {
  const { threshold, down } = webhookSettings(config).deadAlert;
  const thresholdMs = config.settings['limits.management.backlogThreshold'];
  return backlogCheck(inbox, { thresholdMs, deadThreshold: threshold, downWhenDead: down });
}

/** Reports a failed engine as DOWN at once, because the process is about to end. */
function storeChecks(database: Database): readonly HealthIndicator[] {
  const checks = [databaseCheck(database), writerCheck(database)];
  return checks.map((check) => ({ ...check, cacheUntil: database.failed }));
}

/** Threshold above which a check is logged as slow, in milliseconds. */
const SLOW = 10_000;

/** Times the runs of health checks, and logs when a status changes. */
export function healthWatch({ metrics, log }: Pick<AppContext, 'metrics' | 'log'>): OnChecked {
  const timer = metrics.timer('health.check', { description: 'Runs of health checks', tags: ['check'] });
  const last = new Map<string, HealthStatus>();
  return (check, { status, details }, durationMs) => {
    timer.with('check', check).record(durationMs / 1_000);
    if (durationMs > SLOW) log.warn({ check, durationMs: Math.round(durationMs) }, 'health check slow');
    const before = last.get(check) ?? 'UP';
    last.set(check, status);
    if (status === before) return;
    if (status === 'UP') log.info({ check }, 'health check up again');
    else log.warn({ check, status, ...reason(details) }, 'health check failed');
  };
}

/** The details that give the reason. */
function reason({ error, code }: Readonly<Record<string, unknown>> = {}) {
  // Drivers' messages quote the URL that they could not connect to.
  return { error: typeof error === 'string' ? maskSecrets(error) : undefined, code };
}

/** The folder of the database if this process uses one, else the working folder. */
export function dataFolder(url: string, used: boolean): string {
  const [, place] = /^sqlite:(?!:memory:$)(.+)$/u.exec(url) ?? [];
  if (!used || place === undefined) return '.';
  // SQLite also opens URLs, such as `file:data.db` and `file:///var/lib/data.db`.
  return dirname(place.startsWith('file:') ? fileURLToPath(new URL(place, pathToFileURL('./'))) : place);
}
