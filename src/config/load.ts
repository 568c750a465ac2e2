import { resolve } from 'node:path';
import { socketPathOf } from '../core/addresses.ts';
import { ExpectedError } from '../core/errors.ts';
import { didYouMean } from '../core/text.ts';
import { loadModule } from './module.ts';
import { knownScopes, unknownScopes } from './options/access.ts';
import { comparableEndpointId, takenEndpoints } from './options/endpoint-id.ts';
import {
  type Door,
  doors,
  moduleOption,
  type OptionKey,
  optionOf,
  type SettingKey,
  type Settings,
  settingKeys,
  settingsOf,
} from './options/options.ts';
import type { ConfigCode } from './schema/code.ts';
import { createSecretResolver, type SecretResolver, secretTexts } from './secrets.ts';
import {
  type Environment,
  type Found,
  type PropertySource,
  propertySources,
  type Reading,
  readEnvironment,
  readFlags,
} from './sources.ts';

/** The inputs of the configuration. */
export interface ConfigSource {
  /** The arguments after the command. */
  readonly argv: readonly string[];
  readonly env: Environment;
  /** The working directory, absolute: contains portico.config.* and is the base of relative paths. */
  readonly cwd: string;
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
  options: { readonly settings: Settings; readonly broken: ReadonlySet<SettingKey> },
) => void;

/** The whole configuration of a process. */
export interface Config {
  readonly settings: Settings;
  /** The sources of all values, highest precedence first. */
  readonly sources: readonly PropertySource[];
  readonly code: ConfigCode;
  /** Absolute path of the configuration module; undefined if there is none. */
  readonly file: string | undefined;
  /**
   * Absolute path of the file that contains `webhook.secret`; undefined if the secret comes from elsewhere.
   */
  readonly secretFile: string | undefined;
  /** Resolves secrets that the module references. */
  readonly resolveSecret: SecretResolver;
}

/**
 * Merges flags, environment, configuration module and defaults, in this order of precedence. Rejects with one
 * ConfigError that lists all problems.
 */
export async function loadConfig({ argv, env, cwd, check }: ConfigSource): Promise<Config> {
  const flags = readFlags(argv);
  const environment = readEnvironment(env, cwd);
  const secrets = secretTexts(env, [flags, environment]);
  const module = await loadModule({ cwd, flag: flags.module, variable: env[moduleOption.env], secrets });

  const readings = [flags, environment, module.reading];
  const settings = merge(readings);
  const problems = readings.flatMap((reading) => reading.problems);
  const resolveSecret = createSecretResolver(env, cwd);
  const broken = new Set(readings.flatMap((reading) => [...reading.broken]));
  if (module.file !== undefined) {
    check?.(module.code, module.file.name, resolveSecret, problems, { settings, broken });
  }
  if (module.complete) {
    problems.push(...crossCheck({ settings, broken, ...module }));
  }
  if (problems.length > 0) {
    const isCall = problems.length === flags.problems.length;
    throw new ConfigError(problems, undefined, isCall ? 'command line' : undefined);
  }
  const sources = propertySources(flags, env, environment, module.file?.name, module.reading);
  const fromFile = find(readings, 'webhook.secret')?.origin === 'WEBHOOK_SECRET_FILE';
  const secretFile = fromFile ? resolve(cwd, env.WEBHOOK_SECRET_FILE ?? '') : undefined;
  return { settings, sources, code: module.code, file: module.file?.path, secretFile, resolveSecret };
}

function merge(readings: readonly Reading[]): Settings {
  const values = settingKeys.map((key) => {
    const found = find(readings, key);
    return [key, found === undefined ? optionOf(key).default : found.value];
  });
  // Each value was parsed by its own option.
  return Object.fromEntries(values) as Settings;
}

/** The value from the first source that sets an option. */
function find(readings: readonly Reading[], key: SettingKey): Found | undefined {
  return readings.find(({ found }) => found.has(key))?.found.get(key);
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

/** The configuration is invalid; the start ends with this message and exit code 2. */
export class ConfigError extends ExpectedError {
  override readonly name = 'ConfigError';
  readonly code = 'CONFIG_INVALID';
  /** All problems, one line each, without secrets. */
  readonly problems: readonly string[];

  /** `what` is invalid: the configuration, unless only the command line has problems. */
  constructor(problems: readonly string[], options?: ErrorOptions, what = 'configuration') {
    super(`The ${what} is not valid:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`, options);
    this.problems = problems;
  }
}
