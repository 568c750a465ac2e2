import { resolve } from 'node:path';
import { readEndpointAccess } from '../config/options/access.ts';
import { consoleEndpoint } from '../config/options/endpoint-id.ts';
import { type Door, type OptionKey, optionKeys, optionOf, type Settings } from '../config/options/options.ts';
import { isLoopback, socketPathOf } from '../core/addresses.ts';
import { shellWord } from '../core/text.ts';
import type { AccessRules } from '../management/masking.ts';
import { hasRules } from '../relations/relation.ts';
import { backupsIn } from '../sql/backup/backup.ts';
import { databaseAt, serverUrls } from '../sql/database.ts';
import { exposedFiles } from '../sql/sqlite/connection.ts';
import { pathOf } from '../sql/sqlite/migrate.ts';
import type { Config } from './load-config.ts';

/** Whether every request to a door needs credentials. */
export function asksForCredentials(door: Door, { settings, code }: Config): boolean {
  switch (door) {
    case 'graphql':
    case 'rest':
      return settings['api.required'] === 'all';
    case 'management':
      return (
        settings['management.user'] !== undefined ||
        code.users.length > 0 ||
        settings['management.clientCa'] !== undefined
      );
    case 'webhook':
      return settings['webhook.secret'] !== undefined || settings['webhook.clientCa'] !== undefined;
  }
}

/** The open doors that need no credentials; none if they listen on loopback. */
export function exposedDoors(config: Config): readonly Door[] {
  const { settings } = config;
  const { host } = settings;
  if (isLoopback(host) || host.toLowerCase() === 'localhost') return [];
  // File permissions decide who may connect to a Unix socket.
  const isLocal = (door: Door) => socketPathOf(settings[`${door}.port`]) !== undefined;
  return settings.interfaces.filter((door) => !asksForCredentials(door, config) && !isLocal(door));
}

/**
 * Why the console shows no users and deliveries; undefined if it shows them. Without this rule, an open
 * management door would show any program on this machine the data that other doors protect with credentials.
 */
export function closedInConsole(config: Config): string | undefined {
  const { settings, code } = config;
  if (asksForCredentials('management', config)) return undefined;
  // Signed sources protect deliveries even if /webhook itself needs no token.
  const signed = Object.keys(Object(code.sources)).length > 0;
  const asks = settings['api.required'] !== 'none' || signed || asksForCredentials('webhook', config);
  if (!asks) return undefined;
  return `The console shows no users and deliveries: other doors ask for credentials and this one does not. Set ${securedBy('management')} to open them`;
}

/** Why the console does not show rows that rules keep from some callers; undefined if it shows them. */
export function ruledInConsole(config: Config): string | undefined {
  if (!config.relations.some(hasRules) || asksForCredentials('management', config)) return undefined;
  return `The console shows no rows: rules say who may read them, and this door asks for no credentials. Set ${securedBy('management')} to open them`;
}

/** The options that secure a door. */
const SECURED_BY: Readonly<Record<Door, readonly OptionKey[]>> = {
  graphql: ['api.required'],
  rest: ['api.required'],
  management: ['management.user', 'management.password'],
  webhook: ['webhook.secret'],
};

/** How to secure each of these doors, by environment variables. */
export function securityAdvice(doors: readonly Door[]): Readonly<Partial<Record<Door, string>>> {
  return Object.fromEntries(doors.map((door) => [door, `set ${securedBy(door)}`]));
}

/** The environment variables that secure a door. */
export function securedBy(door: Door): string {
  return SECURED_BY[door].map((key) => optionOf(key).env).join(' and ');
}

/** The configured access to management endpoints. */
export function accessOf(settings: Settings): AccessRules {
  return {
    default: settings['management.access'],
    endpoints: readEndpointAccess(settings['management.endpointAccess']),
    max: settings['management.maxAccess'],
  };
}

/** Adds the console and the configuration's endpoints to the default include list only. */
export function includeList({ settings, code }: Config): readonly string[] {
  const include = settings['management.include'];
  const isDefault = include === optionOf('management.include').default;
  return isDefault ? [...include, consoleEndpoint, ...code.endpoints.map(({ id }) => id)] : include;
}

const URLS = ['database.url', 'database.readUrl'] as const satisfies readonly OptionKey[];

/** The values of secret options, the passwords of users, and the passwords in database URLs. */
export function configuredSecrets({ settings, code }: Config): readonly unknown[] {
  const urls: readonly OptionKey[] = URLS;
  const options = optionKeys.filter((key) => optionOf(key).secret && !urls.includes(key));
  return [
    ...options.flatMap((key): unknown => settings[key]),
    ...code.users.map(({ password }) => password),
    ...URLS.flatMap((key) => serverUrls(settings[key] ?? '').flatMap(passwordsIn)),
  ];
}

/** The password of a URL, as written and decoded. */
function passwordsIn(url: string): readonly string[] {
  const password = URL.parse(url)?.password ?? '';
  try {
    return [password, decodeURIComponent(password)];
  } catch {
    return [password];
  }
}

/** Maximum number of files that one warning names. */
const MAX_NAMED = 20;

/** Warns about database files that other users may access, and says which command to run. */
export function warnOfExposedFiles(
  settings: Settings,
  log: { warn(fields: object, message: string): void },
): void {
  const { engine, place } = databaseAt(settings['database.url']);
  if (engine !== 'sqlite' || place === ':memory:') return;
  const file = pathOf(place);
  const backups =
    settings['backup.every'] === undefined ? [] : backupsIn(resolve(settings['backup.folder']), file);
  const exposed = exposedFiles(
    file,
    backups.map(({ path }) => path),
  );
  if (exposed.length === 0) return;
  const files = exposed.slice(0, MAX_NAMED);
  const run = `chmod 600 ${files.map(shellWord).join(' ')}`;
  const more = exposed.length - files.length;
  log.warn(
    { files, ...(more > 0 && { more }), run },
    'others on this machine may read the data in these files',
  );
}
