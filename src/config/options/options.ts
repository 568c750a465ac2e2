import { isKeepableHeader } from '../../core/redaction.ts';
import { apiOptions, jwtOptions } from './access.ts';
import { graphqlOptions, httpOptions, restOptions, tlsOptions } from './doors.ts';
import { auditOptions, backupOptions, managementOptions, tracingOptions } from './management.ts';
import { choice, count, duration, list, type Option, port, someOf, text, toggle } from './option.ts';

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
  'database.readYourWrites': duration({
    env: 'DATABASE_READ_YOUR_WRITES',
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
  ...backupOptions,
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
  'webhook.timeout': duration({
    env: 'WEBHOOK_TIMEOUT',
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
  'webhook.backoff': duration({
    env: 'WEBHOOK_BACKOFF',
    default: 1_000,
    min: 0,
    max: 86_400_000,
    description: 'Maximum delay before the second attempt, in milliseconds; it doubles with each attempt.',
  }),
  'webhook.maxBackoff': duration({
    env: 'WEBHOOK_MAX_BACKOFF',
    default: 3_600_000,
    min: 0,
    max: 604_800_000,
    description: 'Upper bound on the delay between two attempts, in milliseconds.',
  }),
  'webhook.lease': duration({
    env: 'WEBHOOK_LEASE',
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
  'webhook.isolateMemory': count({
    env: 'WEBHOOK_ISOLATE_MEMORY',
    default: 128,
    min: 16,
    description: 'Maximum JavaScript heap of a worker thread of handlers, in MiB.',
  }),
  'webhook.handlerGrace': duration({
    env: 'WEBHOOK_HANDLER_GRACE',
    default: 900_000,
    min: 0,
    max: 2_592_000_000,
    description:
      'Time for which a delivery waits for a removed handler or forward address before it is dead, in milliseconds; 0 for no limit.',
  }),
  'webhook.maxBodyBytes': count({
    env: 'WEBHOOK_MAX_BODY_BYTES',
    default: 1_048_576,
    min: 1,
    description: 'Maximum body size of the webhook door, in bytes. Sources can override it.',
  }),
  'webhook.maxBytesInFlight': count({
    env: 'WEBHOOK_MAX_BYTES_IN_FLIGHT',
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
  'webhook.dedupDays': count({
    env: 'WEBHOOK_DEDUP_DAYS',
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
  'webhook.keptAttempts': count({
    env: 'WEBHOOK_KEPT_ATTEMPTS',
    default: 20,
    description:
      'Maximum attempts in the history of a job, in addition to the one that handled it; the oldest are dropped.',
  }),
  ...auditOptions,
  ...tracingOptions,
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
} as const satisfies Readonly<Record<string, Option<unknown>>>;

/** The key of an option. */
export type OptionKey = keyof typeof options;

/** The effective value of every option, by key. */
export type Settings = {
  readonly [K in OptionKey]: (typeof options)[K] extends Option<infer T> ? T : never;
};

/** The settings of a section, by their names within it. */
type SectionSettings<S extends string> = {
  readonly [K in OptionKey as K extends `${S}.${infer Name}` ? Name : never]: Settings[K];
};

/** The settings whose keys begin with a section, such as `graphql`. */
export function settingsOf<S extends string>(settings: Settings, section: S): SectionSettings<S> {
  const own = optionKeys.filter((key) => key.startsWith(`${section}.`));
  const named = own.map((key) => [key.slice(section.length + 1), settings[key]]);
  return Object.fromEntries(named) as SectionSettings<S>;
}

/** The keys of all options, in the order of the documentation. */
export const optionKeys = Object.keys(options) as readonly OptionKey[];

/** The option of a key, for code that treats all options alike. */
export function optionOf(key: OptionKey): Option<unknown> {
  return options[key];
}

/** Whether an option has this key. */
export function isOptionKey(key: string): key is OptionKey {
  return Object.hasOwn(options, key);
}

/** Names the configuration module. It is no entry of `options`, because the module cannot name itself. */
export const moduleOption = {
  key: 'config',
  flag: '--config',
  env: 'CONFIG',
  default: 'portico.config.ts, .mts, .js, .mjs or .json in the working directory, if any',
  description: 'Configuration module, with your settings and code.',
} as const;
