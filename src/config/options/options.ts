import { isKeepableHeader } from '../../core/redaction.ts';
import { apiOptions, jwtOptions } from './access.ts';
import { graphqlOptions, httpOptions, restOptions, tlsOptions } from './doors.ts';
import { managementOptions } from './management.ts';
import {
  choice,
  count,
  duration,
  list,
  type Option,
  port,
  type Setting,
  someOf,
  text,
  toggle,
} from './option.ts';

/** The four interfaces, in the contract's order (CONTRACT.md#interfaces). */
export const doors = ['graphql', 'rest', 'management', 'webhook'] as const;

/** The name of a door. */
export type Door = (typeof doors)[number];

/** The table of all options. Types, sources, help, documentation and /env are derived from it. */
export const options = {
  host: text({
    env: 'HOST',
    default: '127.0.0.1',
    placeholder: 'host',
    expected: 'a host name or an IP address without brackets and port',
    pattern: /^(?:[\w.-]+|[0-9a-fA-F]*:[0-9a-fA-F:.]*:[0-9a-fA-F:.]*(?:%[\w.-]+)?)$/,
    description: 'Address that all doors listen on; 0.0.0.0 or :: for all network interfaces.',
  }),
  interfaces: someOf({
    env: 'INTERFACES',
    default: doors,
    choices: doors,
    description: 'Doors to open.',
  }),
  ...httpOptions,
  ...tlsOptions,
  'database.url': text({
    env: 'DATABASE_URL',
    default: 'sqlite:portico.db',
    placeholder: 'url',
    secret: true,
    expected: 'sqlite:<file>, sqlite::memory: or postgres://<user>:<password>@<host>/<database>',
    pattern: /^(?:sqlite:(?=\P{Cc}*[^\p{Cc}\s])\P{Cc}+|postgres(?:ql)?:\/\/[^\p{Cc}\s]+)$/u,
    description: 'Database for users and deliveries: sqlite:<file>, sqlite::memory: or postgres://...',
  }),
  'database.readUrl': text({
    env: 'DATABASE_READ_URL',
    unset: 'the same database',
    placeholder: 'url',
    secret: true,
    expected: 'postgres://<user>:<password>@<host>/<database>',
    pattern: /^postgres(?:ql)?:\/\/[^\p{Cc}\s]+$/u,
    description: 'Replica of the PostgreSQL database from which users are read.',
  }),
  'limits.database.readYourWrites': duration({
    default: 1_000,
    min: 0,
    max: 3_600_000,
    description:
      'Time during which a process reads users from the primary after its own write, in milliseconds, since the replica may lag.',
  }),
  'database.migrate': toggle({
    env: 'DATABASE_MIGRATE',
    default: true,
    description:
      'Schema migration at the start; when false, the start refuses a schema that is not up to date ("portico migrate" updates it). --no-migrate is short for false.',
  }),
  'backup.every': text({
    env: 'BACKUP_EVERY',
    unset: 'no backups',
    placeholder: 'interval',
    expected: 'an interval like 15m, 6h or 1d',
    pattern: /^[1-9]\d{0,3}[mhd]$/,
    description: 'Interval of backups of an SQLite database while the service runs, such as 15m, 6h or 1d.',
  }),
  'backup.folder': text({
    env: 'BACKUP_FOLDER',
    default: 'backups',
    placeholder: 'folder',
    description: 'Folder for backups; created if missing.',
  }),
  'backup.keep': count({
    env: 'BACKUP_KEEP',
    default: 7,
    min: 1,
    description: 'Number of backups to keep; a new one replaces the oldest.',
  }),
  ...apiOptions,
  ...jwtOptions,
  ...graphqlOptions,
  ...restOptions,
  ...managementOptions,
  'webhook.port': port({
    env: 'PORT',
    default: 3000,
    description: 'Port of the webhook door; 0 picks a free one. unix:<path> for a Unix socket.',
  }),
  'webhook.secret': list({
    env: 'WEBHOOK_SECRET',
    unset: 'not secured',
    secret: true,
    expected: 'one or more secrets separated by commas, none of them empty or with control characters',
    pattern: /^(?!\s)\P{Cc}+(?<!\s)$/u,
    description:
      'Secrets that senders put in x-webhook-token, separated by commas; several during a rotation.',
  }),
  'webhook.attempts': count({
    env: 'WEBHOOK_ATTEMPTS',
    default: 10,
    min: 1,
    description: 'Maximum attempts before a delivery is dead, unless its handler overrides it.',
  }),
  'limits.webhook.timeout': duration({
    default: 30_000,
    min: 1,
    max: 86_400_000,
    description: 'Timeout of an attempt, in milliseconds, unless its handler overrides it.',
  }),
  'webhook.concurrency': count({
    env: 'WEBHOOK_CONCURRENCY',
    default: 16,
    min: 1,
    description: 'Maximum concurrent deliveries of a handler, unless it overrides it.',
  }),
  'limits.webhook.backoff': duration({
    default: 1_000,
    min: 0,
    max: 86_400_000,
    description: 'Maximum delay before the second attempt, in milliseconds; it doubles with each attempt.',
  }),
  'limits.webhook.maxBackoff': duration({
    default: 3_600_000,
    min: 0,
    max: 604_800_000,
    description: 'Upper bound on the delay between two attempts, in milliseconds.',
  }),
  'limits.webhook.lease': duration({
    default: 5_000,
    min: 500,
    max: 600_000,
    description: 'Time after a crash of a process until another one claims its jobs, in milliseconds.',
  }),
  'webhook.isolate': toggle({
    env: 'WEBHOOK_ISOLATE',
    default: false,
    description:
      'Whether handlers of the configuration module run in worker threads, where a crash or a blocked event loop fails only one attempt. Handlers can override it.',
  }),
  'limits.webhook.isolateMemory': count({
    default: 128,
    min: 16,
    description: 'Maximum JavaScript heap of a worker thread of handlers, in MiB.',
  }),
  'limits.webhook.handlerGrace': duration({
    default: 900_000,
    min: 0,
    max: 2_592_000_000,
    description:
      'Time for which a delivery waits for a removed handler or forward address before it is dead, in milliseconds; 0 for no limit.',
  }),
  'limits.webhook.maxBodyBytes': count({
    default: 1_048_576,
    min: 1,
    description: 'Maximum body size of the webhook door, in bytes. Sources can override it.',
  }),
  'limits.webhook.maxBytesInFlight': count({
    default: 67_108_864,
    min: 1,
    description:
      'Maximum memory of all bodies at the webhook door, in bytes. Beyond it, slow senders and clients that hold more than a quarter make room; if there are none, a body is a 503. The other doors have 64 MiB each.',
  }),
  'webhook.retention': count({
    env: 'WEBHOOK_RETENTION',
    default: 30,
    description:
      'Retention of a delivery after its jobs have ended, or after its receipt if it has none, in days; 0 to keep it forever.',
  }),
  'webhook.retentionBytes': count({
    env: 'WEBHOOK_RETENTION_BYTES',
    default: 0,
    description:
      'Size of the inbox above which Portico removes the deliveries that were handled first, in bytes; 0 for no limit.',
  }),
  'limits.webhook.dedupDays': count({
    default: 7,
    description:
      'Time after receipt in which a repeat of a handled delivery is a duplicate even if retention has removed the delivery, in days; 0 for only as long as it is kept.',
  }),
  'webhook.headers': list({
    env: 'WEBHOOK_HEADERS',
    default: [],
    expected: 'a list of header names, none of them for a secret (authorization, cookie, signature, token)',
    pattern: { test: isKeepableHeader },
    description:
      'Headers to store with deliveries at /webhook itself, for handlers, forward addresses and operators. Each source has its own list.',
  }),
  'limits.webhook.keptAttempts': count({
    default: 20,
    description:
      'Maximum attempts in the history of a job, in addition to the one that handled it; the oldest are dropped.',
  }),
  'audit.retention': count({
    env: 'AUDIT_RETENTION',
    unset: '90 if the endpoint auditevents is exposed, otherwise nothing is recorded',
    description:
      'Retention of audit events, in days; 0 records none. The database keeps at most 50000 refusals and 50000 actions.',
  }),
  'tracing.oneIn': count({
    env: 'TRACING_ONE_IN',
    default: 1,
    min: 1,
    description:
      'With an OpenTelemetry SDK: record spans for one in this many requests that arrive without a trace.',
  }),
  'log.level': choice({
    env: 'LOG_LEVEL',
    default: 'info',
    choices: ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'],
    description: 'Minimum level of log entries (fatal, error, warn, info, debug, trace, silent).',
  }),
  'log.requests': toggle({
    env: 'LOG_REQUESTS',
    default: false,
    description:
      'Whether to log each request at info: client, method, path, status, duration in milliseconds.',
  }),
  profiles: list({
    env: 'PROFILES',
    default: [],
    expected: 'a list of names without control characters',
    pattern: /^\P{Cc}+$/u,
    description: 'Names that /env shows as activeProfiles.',
  }),
  'shutdown.preStopDelay': duration({
    env: 'SHUTDOWN_PRE_STOP_DELAY',
    min: 0,
    max: 300_000,
    unset: '300; if /readyz is probed, three times its interval plus 500, at most 10000',
    description:
      'Pre-stop delay, in milliseconds: during a stop the doors still answer for this long, with "Connection: close". A balancer must notice within it that /readyz fails.',
  }),
} as const satisfies Readonly<Record<string, Setting<unknown>>>;

/** The key of a setting. */
export type SettingKey = keyof typeof options;

/** The key of a limit, a setting that only a module sets. */
type LimitKey = Extract<SettingKey, `limits.${string}`>;

/** The key of an option, a setting with a flag and a variable. */
export type OptionKey = Exclude<SettingKey, LimitKey>;

/** The effective values by key. */
export type Settings = {
  readonly [K in SettingKey]: (typeof options)[K] extends Setting<infer T> ? T : never;
};

/** The settings of a section, by their names within it. */
type SectionSettings<S extends string> = {
  readonly [K in SettingKey as K extends `${S}.${infer Name}` | `limits.${S}.${infer Name}`
    ? Name
    : never]: Settings[K];
};

/** The settings of a section, such as `graphql`, with its limits. */
export function settingsOf<S extends string>(settings: Settings, section: S): SectionSettings<S> {
  const named = settingKeys.flatMap((key) => {
    const own = formerKey(key);
    return own.startsWith(`${section}.`) ? [[own.slice(section.length + 1), settings[key]]] : [];
  });
  return Object.fromEntries(named) as SectionSettings<S>;
}

/** The defaults of a section, for a door that is used as a plugin. */
export function defaultsOf<S extends string>(section: S): SectionSettings<S> {
  const defaults = settingKeys.map((key) => [key, options[key].default] as const);
  return settingsOf(Object.fromEntries(defaults) as unknown as Settings, section);
}

/** The keys of all settings, in the order of the documentation. */
export const settingKeys = Object.keys(options) as readonly SettingKey[];

/** The keys of the limits. */
export const limitKeys = settingKeys.filter((key): key is LimitKey => key.startsWith('limits.'));

/** The keys of all options. */
export const optionKeys = settingKeys.filter(isOptionKey);

/** The option or limit of a key, for code that treats all alike. */
export function optionOf(key: OptionKey): Option<unknown>;
export function optionOf(key: SettingKey): Setting<unknown>;
export function optionOf(key: SettingKey): Setting<unknown> {
  return options[key];
}

/** Whether a setting is an option, with a flag and a variable. */
export function isOptionKey(key: SettingKey): key is OptionKey {
  return !key.startsWith('limits.');
}

/** Whether a setting has this key. */
export function isSettingKey(key: string): key is SettingKey {
  return Object.hasOwn(options, key);
}

/** The key that a limit had as an option; that of an option itself. */
function formerKey(key: SettingKey): string {
  return key.replace(/^limits\./, '');
}

/** Names the configuration module. It stands apart from `options`, because the module cannot name itself. */
export const moduleOption = {
  key: 'config',
  flag: '--config',
  env: 'CONFIG',
  default: 'portico.config.ts, .mts, .js, .mjs or .json in the working directory, if any',
  description: 'Configuration module, with your settings and code.',
} as const;
