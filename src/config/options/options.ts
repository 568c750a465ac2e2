import { PRE_STOP_DELAY } from '../../telemetry/health.ts';
import { api } from './access.ts';
import { graphql, http, rest, users } from './doors.ts';
import { management } from './management.ts';
import {
  choice,
  count,
  type Group,
  inModule,
  list,
  type ModuleKey,
  type Option,
  type Setting,
  someOf,
  text,
  toggle,
} from './option.ts';
import { webhook } from './webhook.ts';

/** The four interfaces, in the contract's order (CONTRACT.md#interfaces). */
export const doors = ['graphql', 'rest', 'management', 'webhook'] as const;

/** The name of a door. */
export type Door = (typeof doors)[number];

/** The doors, and the page for customers. */
export type DoorName = Door | 'portal';

/** Retention of audit events while the endpoint that shows them is exposed, in days. */
export const EXPOSED_AUDIT_DAYS = 90;

const filePath = {
  placeholder: 'file',
  expected: 'the path of a file',
  pattern: /^\P{Cc}*[^\p{Cc}\s]\P{Cc}*$/u,
} as const;

/** TLS, for all doors on ports. */
const tls = {
  cert: text({
    ...filePath,
    env: 'TLS_CERT',
    unset: 'plain HTTP',
    help: 'File with the certificate of all doors and its intermediates, as PEM; requires tls.key. The doors then speak only TLS 1.2 and 1.3. Portico reloads changed files without a restart.',
    essential: true,
  }),
  key: text({
    ...filePath,
    env: 'TLS_KEY',
    unset: 'plain HTTP',
    help: 'File with the private key of that certificate, as PEM.',
  }),
} as const;

/** The certificate authorities whose clients a door accepts. */
function clientCa(door: 'management' | 'webhook') {
  return text({
    ...filePath,
    env: `${door.toUpperCase()}_CLIENT_CA`,
    unset: 'no client certificates',
    help: `File with certificate authorities, as PEM. A client of the ${door} door must have a certificate of one of them; requires tls.cert.`,
  });
}

/**
 * The tree of all settings and of everything else that a configuration module holds. Types, sources, help,
 * documentation, /env and the JSON Schema are derived from it. A setting without a variable is a limit: in a
 * module its key begins with `limits.`, for the doors it stands among the other settings of its section.
 */
const tree = {
  ...grouped('service', {
    host: text({
      env: 'HOST',
      default: '127.0.0.1',
      placeholder: 'host',
      expected: 'a host name or an IP address without brackets and port',
      pattern: /^(?:[\w.-]+|[0-9a-fA-F]*:[0-9a-fA-F:.]*:[0-9a-fA-F:.]*(?:%[\w.-]+)?)$/,
      help: 'Address that all doors listen on; 0.0.0.0 or :: for all network interfaces.',
      essential: true,
    }),
    interfaces: someOf({
      env: 'INTERFACES',
      default: doors,
      choices: doors,
      help: 'Doors to open.',
      essential: true,
    }),
    http,
    tls,
  }),
  ...grouped('database', {
    database: {
      url: text({
        env: 'DATABASE_URL',
        default: 'sqlite:portico.db',
        placeholder: 'url',
        secret: true,
        expected: 'sqlite:<file>, sqlite::memory: or postgres://<user>:<password>@<host>/<database>',
        pattern: /^(?:sqlite:(?=\P{Cc}*[^\p{Cc}\s])\P{Cc}+|postgres(?:ql)?:\/\/[^\p{Cc}\s]+)$/u,
        help: 'Database for users and deliveries: sqlite:<file>, sqlite::memory: or postgres://...',
        essential: true,
      }),
      readUrl: text({
        env: 'DATABASE_READ_URL',
        unset: 'the same database',
        placeholder: 'url',
        secret: true,
        expected: 'postgres://<user>:<password>@<host>/<database>',
        pattern: /^postgres(?:ql)?:\/\/[^\p{Cc}\s]+$/u,
        help: 'Replica of the PostgreSQL database from which users and relations are read.',
      }),
      readYourWrites: count({
        unit: 'ms',
        default: 1_000,
        min: 0,
        max: 3_600_000,
        help: 'Time during which a process reads users from the primary after its own write, in milliseconds; then until the replica has the write. 0 turns both off.',
      }),
      migrate: toggle({
        env: 'DATABASE_MIGRATE',
        default: true,
        help: 'Schema migration at the start; when false, the start refuses a schema that is not up to date ("portico migrate" updates it). --no-migrate is short for false.',
      }),
      relationSteps: choice({
        default: 'additive',
        choices: ['additive', 'never', 'all-but-drops'],
        help: 'Steps to the tables of relations that a start may make (additive, never, all-but-drops); it refuses to start if others are missing.',
      }),
    },
    relations: inModule({
      json: true,
      shape: '{ [name]: { columns: { [name]: { type, ... } }, key, unique, indexes } }',
      help: 'Relations by name, each served at `/<name>` of the REST door: columns with their types, a key, unique columns and indexes. [RELATIONS.md](RELATIONS.md) describes them. Plain data, so also allowed in .json.',
    }),
    backup: {
      every: text({
        env: 'BACKUP_EVERY',
        unset: 'no backups',
        placeholder: 'interval',
        expected: 'an interval like 15m, 6h or 1d',
        pattern: /^[1-9]\d{0,3}[mhd]$/,
        help: 'Interval of backups of an SQLite database while the service runs, such as 15m, 6h or 1d.',
      }),
      folder: text({
        env: 'BACKUP_FOLDER',
        default: 'backups',
        placeholder: 'folder',
        help: 'Folder for backups; created if missing.',
      }),
      keep: count({
        env: 'BACKUP_KEEP',
        default: 7,
        min: 1,
        help: 'Number of backups to keep; a new one replaces the oldest.',
      }),
    },
  }),
  ...grouped('service', { api }),
  ...grouped('graphql', { graphql: { ...graphql, setup: setupOf('graphql') } }),
  ...grouped('rest', { rest: { ...rest, setup: setupOf('rest') } }),
  ...grouped('database', { users }),
  ...grouped('management', {
    management: { setup: setupOf('management'), clientCa: clientCa('management'), ...management },
  }),
  ...grouped('webhook', {
    webhook: { setup: setupOf('webhook'), clientCa: clientCa('webhook'), ...webhook },
  }),
  ...grouped('service', {
    audit: {
      retention: count({
        env: 'AUDIT_RETENTION',
        unset: `${EXPOSED_AUDIT_DAYS} if the endpoint auditevents is exposed, otherwise nothing is recorded`,
        help: 'Retention of audit events, in days; 0 records none. The database keeps at most 50000 refusals and 50000 actions.',
      }),
    },
    tracing: {
      oneIn: count({
        env: 'TRACING_ONE_IN',
        default: 1,
        min: 1,
        help: 'With an OpenTelemetry SDK: record spans for one in this many requests that arrive without a trace.',
      }),
    },
    log: {
      level: choice({
        env: 'LOG_LEVEL',
        default: 'info',
        choices: ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'],
        help: 'Minimum level of log entries (fatal, error, warn, info, debug, trace, silent).',
        essential: true,
      }),
      requests: toggle({
        env: 'LOG_REQUESTS',
        default: false,
        help: 'Whether to log each request at info: client, method, path, status, duration in milliseconds.',
      }),
    },
    profiles: list({
      env: 'PROFILES',
      default: [],
      expected: 'a list of names without control characters',
      pattern: /^\P{Cc}+$/u,
      help: 'Names that /env shows as activeProfiles.',
    }),
    shutdown: {
      preStopDelay: count({
        unit: 'ms',
        env: 'SHUTDOWN_PRE_STOP_DELAY',
        min: 0,
        max: 300_000,
        unset: `${PRE_STOP_DELAY.usual}; if /readyz is probed, ${PRE_STOP_DELAY.probes} times its interval plus ${PRE_STOP_DELAY.probeTime}, at most ${PRE_STOP_DELAY.max}`,
        help: 'Pre-stop delay, in milliseconds: during a stop the doors still answer for this long, with "Connection: close". A balancer must notice within it that /readyz fails.',
      }),
    },
  }),
} as const;

/** The key with which a module extends a door. */
function setupOf(door: string): ModuleKey {
  return inModule({
    shape: '(app) => void',
    help: `Adds routes, hooks and plugins to the ${door} door: \`app\` is its Fastify instance. It may be asynchronous; the door listens when it has ended.`,
  });
}

/** Sets the group of all entries. */
function grouped<const E extends object>(group: Group, entries: E): E {
  const all = Object.entries(entries).map(([name, entry]: [string, object]) => {
    return [name, isEntry(entry) ? { ...entry, group } : grouped(group, entry)];
  });
  return Object.fromEntries(all) as E;
}

/** Whether a node of the tree is a setting or key, and no section. */
function isEntry(node: object): node is Setting<unknown> | Option<unknown> | ModuleKey {
  return 'help' in node && typeof node.help === 'string';
}

type Tree = typeof tree;

/** The entries of a part of the tree; `Path` stands before their names. */
type Flat<E, Path extends string = ''> = {
  [K in keyof E & string]: E[K] extends ModuleKey
    ? { readonly module: `${Path}${K}` }
    : E[K] extends Option<infer T>
      ? { readonly key: `${Path}${K}`; readonly value: T }
      : E[K] extends Setting<infer T>
        ? { readonly key: `limits.${Path}${K}`; readonly value: T }
        : Flat<E[K], `${Path}${K}.`>;
}[keyof E & string];

type Entry = Flat<Tree>;

/** A key that only a module can contain. */
export type CodeKey = Extract<Entry, { module: string }>['module'];

/** The key of a setting. */
export type SettingKey = Extract<Entry, { key: string }>['key'];

/** The key of an option, a setting with a flag and a variable. */
export type OptionKey = Exclude<SettingKey, `limits.${string}`>;

/** The effective values by key. */
export type Settings = { readonly [S in Extract<Entry, { key: string }> as S['key']]: S['value'] };

/** The part of a tree at a path such as `graphql.cors`. */
type At<E, Path extends string> = Path extends `${infer Name}.${infer Rest}`
  ? Name extends keyof E
    ? At<E[Name], Rest>
    : never
  : Path extends keyof E
    ? E[Path]
    : never;

/** The values of a part of the tree. */
type Values<E> = {
  readonly [K in keyof E as E[K] extends ModuleKey ? never : K]: E[K] extends Setting<infer T>
    ? T
    : Values<E[K]>;
};

/** The settings of a section, such as `graphql`, with its limits. */
export function settingsOf<S extends string>(settings: Settings, section: S): Values<At<Tree, S>> {
  return valuesOf(section, (key) => settings[key]);
}

/** The defaults of a section, for a door that is used as a plugin. */
export function defaultsOf<S extends string>(section: S): Values<At<Tree, S>> {
  return valuesOf(section, (key) => optionOf(key).default);
}

function valuesOf<S extends string>(section: S, read: (key: SettingKey) => unknown) {
  const values: Record<string, unknown> = {};
  for (const key of settingKeys) {
    const path = pathOf(key);
    if (path.startsWith(`${section}.`)) put(values, path.slice(section.length + 1), read(key));
  }
  return values as Values<At<Tree, S>>;
}

/** Puts a value into nested objects by its path. */
function put(root: Record<string, unknown>, path: string, value: unknown): void {
  const names = path.split('.');
  const last = names.pop() ?? path;
  let at = root;
  for (const name of names) {
    at[name] ??= {};
    at = at[name] as Record<string, unknown>;
  }
  at[last] = value;
}

const settings = new Map<string, Setting<unknown>>();
const modules = new Map<CodeKey, ModuleKey>();

function collect(section: object, path: string): void {
  for (const [name, node] of Object.entries(section) as [string, object][]) {
    const key = `${path}${name}`;
    if (!isEntry(node)) collect(node, `${key}.`);
    else if ('shape' in node) modules.set(key as CodeKey, node);
    else settings.set('env' in node ? key : `limits.${key}`, node);
  }
}
collect(tree, '');

/** The keys of all settings, in the order of the documentation. */
export const settingKeys = [...settings.keys()] as readonly SettingKey[];

/** The keys of the limits. */
export const limitKeys = settingKeys.filter((key) => !isOptionKey(key));

/** The keys of all options. */
export const optionKeys = settingKeys.filter(isOptionKey);

/** The keys that only a module can contain, besides limits. */
export const codeKeys: ReadonlyMap<CodeKey, ModuleKey> = modules;

/** The option or limit of a key, for code that treats all alike. */
export function optionOf(key: OptionKey): Option<unknown>;
export function optionOf(key: SettingKey): Setting<unknown>;
export function optionOf(key: SettingKey): Setting<unknown> {
  return settings.get(key) as Setting<unknown>;
}

/** Whether a setting is an option, with a flag and a variable. */
export function isOptionKey(key: SettingKey): key is OptionKey {
  return !key.startsWith('limits.');
}

/** Whether a setting has this key. */
export function isSettingKey(key: string): key is SettingKey {
  return settings.has(key);
}

/** The place of a setting in the tree, which was the key of a limit when it was an option. */
export function pathOf(key: SettingKey): string {
  return key.replace(/^limits\./, '');
}

/** Names the configuration module. It stands apart from `options`, because the module cannot name itself. */
export const moduleOption = {
  key: 'config',
  flag: '--config',
  env: 'CONFIG',
  default: 'portico.config.ts, .mts, .js, .mjs or .json in the working directory, if any',
  help: 'Configuration module, with your settings and code.',
} as const;
