import type { FastifyInstance } from 'fastify';
import { type ManagementUser, readUsers } from '../access/config.ts';
import { ConfigError, loadSettings, type SettingsSource } from '../config/load.ts';
import { knownScopes, unknownScopes } from '../config/options/access.ts';
import { comparableEndpointId, takenEndpoints } from '../config/options/endpoint-id.ts';
import {
  type CodeKey,
  type Door,
  doors,
  type OptionKey,
  optionOf,
  type SettingKey,
  type Settings,
  settingsOf,
} from '../config/options/options.ts';
import type { Given } from '../config/schema/fields.ts';
import type { SecretResolver } from '../config/secrets.ts';
import type { PropertySource } from '../config/sources.ts';
import { socketPathOf } from '../core/addresses.ts';
import { isRecord } from '../core/json.ts';
import { didYouMean } from '../core/text.ts';
import { type GraphqlCode, readContext } from '../graphql/config.ts';
import { type HandlerSpec, readHandlers } from '../inbox/config.ts';
import {
  type ConfiguredCheck,
  type CustomEndpoint,
  type HealthGroupOptions,
  readEndpoints,
  readHealthChecks,
  readHealthGroups,
} from '../management/config.ts';
import type { Relation, Rule } from '../relations/relation.ts';
import {
  readSending,
  SENDING_PATHS,
  SENDING_SCOPES,
  type SendingSettings,
  withPublishedChanges,
} from '../sending/config.ts';
import type { IntrospectOptions } from '../sql/existing/declare.ts';

/** The inputs of the configuration. */
export interface ConfigSource extends SettingsSource {
  /** Validates the parts of the module that a door reads; appends to `problems`. */
  readonly check?: ModuleCheck;
}

/** Validates parts of a module. */
export type ModuleCheck = (
  code: ConfigCode,
  /** The module's name in messages. */
  name: string,
  resolveSecret: SecretResolver,
  problems: string[],
  /** The settings. Those in `broken` have an invalid value and cannot be relied on. */
  options: {
    readonly settings: Settings;
    readonly broken: ReadonlySet<SettingKey>;
    /** The declared relations; incomplete if there are problems. */
    readonly relations: readonly Relation[];
  },
) => void;

/** The whole configuration of a process. */
export interface Config {
  readonly settings: Settings;
  /** The sources of all values, highest precedence first. */
  readonly sources: readonly PropertySource[];
  readonly code: ConfigCode;
  /** The declared relations. */
  readonly relations: readonly Relation[];
  /** Which tables of the database are relations, without being declared; undefined if none are. */
  readonly introspect: IntrospectOptions | undefined;
  /** Absolute path of the configuration module; undefined if there is none. */
  readonly file: string | undefined;
  /**
   * Absolute path of the file that contains `webhook.secret`; undefined if the secret comes from elsewhere.
   */
  readonly secretFile: string | undefined;
  /** Resolves secrets that the module references. */
  readonly resolveSecret: SecretResolver;
}

/** The code that a configuration module adds. */
interface ConfigCode {
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
  /** How events are sent to the endpoints of customers; undefined if they are not. */
  readonly sending: SendingSettings | undefined;
  /** Tokens for REST and GraphQL; data, not validated yet. */
  readonly apiTokens: unknown;
  readonly graphql: GraphqlCode;
  readonly setups: DoorSetups;
}

/**
 * Merges flags, environment, configuration module and defaults, in this order of precedence. Rejects with one
 * ConfigError that lists all problems.
 */
export async function loadConfig({ check, ...source }: ConfigSource): Promise<Config> {
  const loaded = await loadSettings(source);
  const { broken, sources, module, secretFile, resolveSecret, wrongFlags } = loaded;
  const { file, given, complete } = module;
  const problems = [...loaded.problems];
  const place = { value: given.get('relations'), path: `${file?.name}: relations` };
  const servesUsers = loaded.settings['rest.users'] === 'standard';
  const introspect = introspectOf(place, problems);
  const relations = introspect === undefined ? await relationsOf(place, servesUsers, problems) : [];
  const read = readModuleCode(given, file?.name ?? '', problems);
  const { sending } = read;
  const at = `${file?.name}: webhook.sending`;
  const code =
    sending === undefined
      ? read
      : { ...read, sending: withPublishedChanges(sending, relations, at, problems) };
  const withRelations = withScopes(loaded.settings, relations, introspect !== undefined);
  const settings = code.sending === undefined ? withRelations : withSending(withRelations);
  if (code.sending !== undefined) problems.push(...takenPaths(relations, place.path));
  if (file !== undefined) check?.(code, file.name, resolveSecret, problems, { settings, broken, relations });
  if (complete) {
    problems.push(...crossCheck({ settings, broken, code, setsUsers: given.has('management.users') }));
  }
  if (problems.length > 0) {
    const isCall = problems.length === wrongFlags;
    throw new ConfigError(problems, undefined, isCall ? 'command line' : undefined);
  }
  return { settings, sources, code, relations, introspect, file: file?.path, secretFile, resolveSecret };
}

/** Reads the relations; imports their reader only if there are any. */
async function relationsOf(
  { value = {}, path }: Given,
  servesUsers: boolean,
  problems: string[],
): Promise<readonly Relation[]> {
  if (isRecord(value) && Object.keys(value).length === 0 && !servesUsers) return [];
  const { readRelations } = await import('../config/schema/relations.ts');
  return readRelations({ value, path }, problems, { servesUsers });
}

/** Reads which tables the start looks for: `'introspect'` or `{ introspect: { only } }`; undefined for a declaration. */
function introspectOf({ value, path }: Given, problems: string[]): IntrospectOptions | undefined {
  if (value === 'introspect') return {};
  if (!isRecord(value) || !isRecord(value.introspect) || 'columns' in value.introspect) return undefined;
  const options = value.introspect;
  const at = `${path}.introspect`;
  if (Object.keys(value).length > 1)
    problems.push(`${path} has introspect, which takes the place of a declaration`);
  for (const [name, given] of Object.entries(options)) {
    if (!['schema', 'only', 'except'].includes(name))
      problems.push(`${at}.${name} is not an option${didYouMean(name, ['schema', 'only', 'except'])}`);
    else if (name === 'schema' ? typeof given !== 'string' : !isTexts(given))
      problems.push(
        `${at}.${name} must be ${name === 'schema' ? 'the name of a schema' : 'an array of tables'}`,
      );
  }
  return options as IntrospectOptions;
}

const isTexts = (value: unknown) => Array.isArray(value) && value.every((each) => typeof each === 'string');

/**
 * A configuration with the relations that the tables of its database are, and with how existing tables store their rows;
 * `notes` tell which tables are left out. Fails with DatabaseOpenError, which lists all differences between a declaration
 * and its tables.
 */
export async function withTables(config: Config): Promise<Config & { readonly notes: readonly string[] }> {
  const { settings, introspect } = config;
  const url = settings['database.url'];
  if (introspect === undefined && !config.relations.some(({ existing }) => existing !== undefined))
    return { ...config, notes: [] };
  const { existingTables, withExistingTables } = await import('../sql/open.ts');
  if (introspect === undefined)
    return { ...config, relations: await withExistingTables(url, config.relations), notes: [] };
  const { relations: value, notes } = await existingTables(url, introspect);
  const problems: string[] = [];
  const declared = await relationsOf(
    { value, path: 'introspected' },
    settings['rest.users'] === 'standard',
    problems,
  );
  if (problems.length > 0) throw new ConfigError(problems);
  const relations = await withExistingTables(url, declared);
  return { ...config, settings: withScopes(settings, relations), relations, notes };
}

/** Adds the scopes of relations to those that tokens may have; those of tables are known once they are found. */
function withScopes(settings: Settings, relations: readonly Relation[], areToCome = false): Settings {
  if (areToCome) return { ...settings, 'api.scopes': [...settings['api.scopes'], '*:read', '*:write'] };
  if (relations.length === 0) return settings;
  const served = relations.map(({ name }) => name).filter((name) => name !== 'users');
  const names = served.length === 0 ? [] : ['*', ...served];
  const scopes = [
    ...names.flatMap((name) => [`${name}:read`, `${name}:write`]),
    ...relations.flatMap(scopesOf),
  ];
  return { ...settings, 'api.scopes': [...settings['api.scopes'], ...scopes] };
}

/** Adds the scopes of what sends events to customers. */
function withSending(settings: Settings): Settings {
  return { ...settings, 'api.scopes': [...settings['api.scopes'], ...SENDING_SCOPES] };
}

/** The relations whose paths sending needs. */
function takenPaths(relations: readonly Relation[], path: string): readonly string[] {
  return relations
    .filter(({ name }) => SENDING_PATHS.includes(name))
    .map(({ name }) => `${path}.${name} has a path of webhook.sending; give the relation another name`);
}

/** The scopes that the rules of a relation and of its columns name. */
function scopesOf({ columns, rules }: Relation): readonly string[] {
  const all = [
    ...Object.values<Rule>(rules ?? {}),
    ...columns.flatMap((column) => [column.rules?.read ?? [], column.rules?.write ?? []]),
  ];
  return all.flat().flatMap((grant) => (typeof grant === 'object' && 'scope' in grant ? [grant.scope] : []));
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
    sending: readSending(at('webhook.sending'), problems),
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

/** The input of the checks across settings. */
interface CrossCheckInput {
  readonly settings: Settings;
  /** Options with an invalid value; a check that needs one of them is skipped. */
  readonly broken: ReadonlySet<SettingKey>;
  /** Whether the module sets management.users, valid or not. */
  readonly setsUsers: boolean;
  readonly code: Pick<ConfigCode, 'users' | 'endpoints'>;
}

/** One line for each contradiction between settings. */
export function crossCheck(input: CrossCheckInput): readonly string[] {
  return [
    ...credentials(input),
    ...identityProvider(input),
    ...roles(input),
    ...userNames(input),
    ...ports(input),
    ...endpointNames(input),
    ...endpointAccess(input),
    ...adminUrl(input),
    ...clientCertificates(input),
    ...replica(input),
    ...backups(input),
    ...origins(input),
    ...basicScopes(input),
  ];
}

const pairs = [
  ['management.user', 'management.password'],
  ['management.springBootAdmin.user', 'management.springBootAdmin.password'],
  ['tls.cert', 'tls.key'],
] as const satisfies readonly (readonly OptionKey[])[];

function credentials({ settings, broken }: CrossCheckInput): readonly string[] {
  return pairs.flatMap((pair) => {
    if (pair.some((key) => broken.has(key))) return [];
    const [set, missing] = settings[pair[0]] === undefined ? pair.toReversed() : pair;
    if (set === undefined || missing === undefined) return [];
    if (settings[set] === undefined || settings[missing] !== undefined) return [];
    return [`${set} is set and ${missing} is not; set both (${optionOf(missing).env}) or none`];
  });
}

const PROVIDER = [
  'api.jwt.issuer',
  'api.jwt.audience',
  'api.jwt.jwks',
] as const satisfies readonly OptionKey[];

function identityProvider({ settings, broken }: CrossCheckInput): readonly string[] {
  if (PROVIDER.some((key) => broken.has(key))) return [];
  const missing = PROVIDER.filter((key) => settings[key] === undefined);
  if (missing.length === 0 || missing.length === PROVIDER.length) return [];
  const [set] = PROVIDER.filter((key) => !missing.includes(key));
  return [`${set} is set and ${missing.join(' and ')} not; set all of them or none`];
}

function roles({ settings, broken, setsUsers }: CrossCheckInput): readonly string[] {
  if (broken.has('management.user') || broken.has('management.role')) return [];
  if (settings['management.role'] === undefined) return [];
  // `credentials` reports a password without a user.
  if (settings['management.user'] !== undefined || settings['management.password'] !== undefined) return [];
  if (setsUsers) return [];
  return [
    'management.role is set but there is no user; set management.user and management.password, or users',
  ];
}

function userNames({ settings, code }: CrossCheckInput): readonly string[] {
  const user = settings['management.user'];
  if (!code.users.some((entry) => entry.user === user)) return [];
  return ['management.user is also in management.users of the module; keep one of them'];
}

function ports({ settings, broken }: CrossCheckInput): readonly string[] {
  if (broken.has('interfaces')) return [];
  const open = doors.filter((door) => settings.interfaces.includes(door) && !broken.has(`${door}.port`));
  const problems: string[] = [];
  const first = new Map<number | string, Door>();
  for (const door of open) {
    const port = settings[`${door}.port`];
    const other = first.get(port);
    if (port === 0) continue;
    if (other === undefined) first.set(port, door);
    else problems.push(`${other}.port and ${door}.port are both ${port}; every door needs its own port`);
  }
  return problems;
}

function clientCertificates({ settings, broken }: CrossCheckInput): readonly string[] {
  return (['management', 'webhook'] as const).flatMap((door) => {
    const key = `${door}.clientCa` as const;
    if (broken.has(key) || broken.has('tls.cert') || settings[key] === undefined) return [];
    const missing = settings['tls.cert'] === undefined;
    const onSocket = socketPathOf(settings[`${door}.port`]) !== undefined;
    if (missing) return [`${key} is set and tls.cert is not; only TLS has client certificates`];
    return onSocket ? [`${key} is set but ${door}.port is a Unix socket, which has no TLS`] : [];
  });
}

/** Spring Boot Admin cannot reach a Unix socket. */
function adminUrl({ settings, broken }: CrossCheckInput): readonly string[] {
  if (broken.has('management.port') || broken.has('management.springBootAdmin.managementUrl')) return [];
  if (settings['management.springBootAdmin.url'] === undefined) return [];
  if (settings['management.springBootAdmin.managementUrl'] !== undefined) return [];
  if (socketPathOf(settings['management.port']) === undefined) return [];
  return [
    'management.port is a Unix socket, so management.springBootAdmin.managementUrl must say how Spring Boot Admin reaches the door',
  ];
}

/** A typing error would hide an endpoint, or expose it. */
function endpointNames(input: CrossCheckInput): readonly string[] {
  return (['management.include', 'management.exclude'] as const).flatMap((key) => {
    if (input.broken.has(key)) return [];
    return input.settings[key].filter((id) => id !== '*').flatMap((id) => unknownEndpoint(input, key, id));
  });
}

/** A problem if no endpoint has this id. */
function unknownEndpoint({ code }: CrossCheckInput, key: OptionKey, id: string): readonly string[] {
  const known = [...takenEndpoints, ...code.endpoints.map((endpoint) => endpoint.id)];
  const same = comparableEndpointId(id);
  if (known.some((each) => comparableEndpointId(each) === same)) return [];
  return [`${key} names ${id}, which is not an endpoint${didYouMean(id, known)}`];
}

/** A typing error in an id would leave that endpoint open. */
function endpointAccess(input: CrossCheckInput): readonly string[] {
  const { settings, broken } = input;
  if (broken.has('management.endpointAccess')) return [];
  const named = new Set<string>();
  return settings['management.endpointAccess'].flatMap((entry) => {
    const [id = ''] = entry.split('=', 1);
    const unknown = unknownEndpoint(input, 'management.endpointAccess', id);
    if (unknown.length > 0) return unknown;
    const same = comparableEndpointId(id);
    if (named.has(same)) return [`management.endpointAccess names ${id} twice; keep one of them`];
    named.add(same);
    return [];
  });
}

function replica({ settings, broken }: CrossCheckInput): readonly string[] {
  if (broken.has('database.url') || broken.has('database.readUrl')) return [];
  if (settings['database.readUrl'] === undefined || settings['database.url'].startsWith('postgres'))
    return [];
  return ['database.readUrl is set but database.url is no postgres:// URL; only PostgreSQL has replicas'];
}

/** Browsers refuse this combination, because every page could then act as its visitor. */
function origins({ settings, broken }: CrossCheckInput): readonly string[] {
  return (['rest', 'graphql'] as const).flatMap((door) => {
    if (broken.has(`${door}.cors.origins`) || !settings[`${door}.cors.credentials`]) return [];
    if (!settings[`${door}.cors.origins`].includes('*')) return [];
    return [`${door}.cors.origins has * and ${door}.cors.credentials is true; name the origins`];
  });
}

function backups({ settings, broken }: CrossCheckInput): readonly string[] {
  if (broken.has('database.url') || settings['backup.every'] === undefined) return [];
  const url = settings['database.url'];
  if (url.startsWith('postgres')) {
    return [
      'backup.every is set but the database is on PostgreSQL; "portico backup" says which pg_dump to schedule',
    ];
  }
  return url === 'sqlite::memory:' ? ['backup.every is set but the database is in memory only'] : [];
}

function basicScopes({ settings, broken }: CrossCheckInput): readonly string[] {
  const keys = ['api.basic', 'api.readScope', 'api.writeScope', 'api.scopes'] as const;
  if (keys.some((key) => broken.has(key))) return [];
  return unknownScopes('api.basic', settings['api.basic'], knownScopes(settingsOf(settings, 'api')));
}
