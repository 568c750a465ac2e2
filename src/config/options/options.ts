import { doors } from './door.ts';
import { managementOptions } from './management-options.ts';
import {
  choice,
  count,
  duration,
  list,
  type Option,
  optionalList,
  optionalText,
  path,
  port,
  someOf,
  text,
  toggle,
} from './option.ts';
import { trustedProxies } from './trusted-proxies.ts';

/** Every option once. All else follows from here: types, sources, help, documentation and what /env shows. */
export const options = {
  host: text({
    env: 'HOST',
    default: '127.0.0.1',
    placeholder: 'host',
    expected: 'a host name or an IP address without brackets and port',
    pattern: /^(?:[\w.-]+|[0-9a-fA-F]*:[0-9a-fA-F:.]*:[0-9a-fA-F:.]*(?:%[\w.-]+)?)$/,
    description: 'The address that every door listens on; 0.0.0.0 or :: for all.',
  }),
  interfaces: someOf({
    env: 'INTERFACES',
    default: doors,
    choices: doors,
    description: 'The doors to open.',
  }),
  'http.trustProxy': trustedProxies({
    env: 'TRUST_PROXY',
    description:
      'Addresses and CIDR ranges of the proxies in front of the doors (also loopback, linklocal, uniquelocal): only their X-Forwarded-For, -Host and -Proto count, for the limit on failed log-ins, links and /httpexchanges. true trusts everybody who connects, so that any client can claim an address unless a proxy replaces these headers.',
  }),
  'database.url': text({
    env: 'DATABASE_URL',
    default: 'sqlite:portico.db',
    placeholder: 'url',
    secret: true,
    expected: 'sqlite:<file>, sqlite::memory: or postgres://<user>:<password>@<host>/<database>',
    pattern: /^(?:sqlite:(?=\P{Cc}*[^\p{Cc}\s])\P{Cc}+|postgres(?:ql)?:\/\/[^\p{Cc}\s]+)$/u,
    description: 'Where users and deliveries are kept: sqlite:<file>, sqlite::memory: or postgres://...',
  }),
  'database.readUrl': optionalText({
    env: 'DATABASE_READ_URL',
    unset: 'the same database',
    placeholder: 'url',
    secret: true,
    expected: 'postgres://<user>:<password>@<host>/<database>',
    pattern: /^postgres(?:ql)?:\/\/[^\p{Cc}\s]+$/u,
    description: 'A replica of the PostgreSQL database, from which users are read.',
  }),
  'database.readYourWrites': duration({
    env: 'DATABASE_READ_YOUR_WRITES',
    default: 1_000,
    min: 0,
    max: 3_600_000,
    description:
      'For how many milliseconds after a write of its own a process reads no user from the replica, which may not have it yet.',
  }),
  'database.migrate': toggle({
    env: 'DATABASE_MIGRATE',
    default: true,
    description:
      'Whether the start brings the schema up to date; when not, it refuses one that is not ("portico migrate" does it). --no-migrate is short for false.',
  }),
  'graphql.port': port({
    env: 'GRAPHQL_PORT',
    default: 4000,
    description: 'The port of the GraphQL door; 0 picks a free one.',
  }),
  'graphql.path': path({
    env: 'GRAPHQL_PATH',
    default: '/graphql',
    root: false,
    description: 'The path of the GraphQL endpoint.',
  }),
  'graphql.users': choice({
    env: 'GRAPHQL_USERS',
    default: 'memory',
    choices: ['memory', 'database'],
    description:
      'Which users GraphQL serves: its own in memory, or those of the database that REST serves (memory, database).',
  }),
  'graphql.introspection': toggle({
    env: 'GRAPHQL_INTROSPECTION',
    default: true,
    description: 'Whether clients may ask for the schema; GraphiQL needs it.',
  }),
  'graphql.suggestions': toggle({
    env: 'GRAPHQL_SUGGESTIONS',
    default: true,
    description: 'Whether errors name what the client could have meant.',
  }),
  'graphql.maxTokens': count({
    env: 'GRAPHQL_MAX_TOKENS',
    default: 1_000,
    min: 1,
    description: 'The most words and signs of a GraphQL document.',
  }),
  'graphql.maxDepth': count({
    env: 'GRAPHQL_MAX_DEPTH',
    default: 10,
    min: 1,
    description: 'The most fields inside each other.',
  }),
  'graphql.maxAliases': count({
    env: 'GRAPHQL_MAX_ALIASES',
    default: 30,
    description: 'The most aliases of an operation.',
  }),
  'graphql.maxDirectives': count({
    env: 'GRAPHQL_MAX_DIRECTIVES',
    default: 50,
    description: 'The most directives of an operation.',
  }),
  'graphql.maxRootFields': count({
    env: 'GRAPHQL_MAX_ROOT_FIELDS',
    default: 30,
    min: 1,
    description: 'The most fields of Query, Mutation or Subscription in an operation.',
  }),
  'graphql.maxBodyBytes': count({
    env: 'GRAPHQL_MAX_BODY_BYTES',
    default: 102_400,
    min: 1,
    description: 'The largest request body of the GraphQL door, in bytes.',
  }),
  'graphql.maxCachedDocuments': count({
    env: 'GRAPHQL_MAX_CACHED_DOCUMENTS',
    default: 1_000,
    description: 'How many documents are remembered, parsed, validated and planned.',
  }),
  'graphql.maxUsers': count({
    env: 'GRAPHQL_MAX_USERS',
    default: 100_000,
    min: 2,
    description: 'The most users that the GraphQL door keeps in memory.',
  }),
  'rest.port': port({
    env: 'REST_PORT',
    default: 8000,
    description: 'The port of the REST door; 0 picks a free one.',
  }),
  ...managementOptions,
  'webhook.port': port({
    env: 'PORT',
    default: 3000,
    description: 'The port of the webhook door; 0 picks a free one.',
  }),
  'webhook.secret': optionalList({
    env: 'WEBHOOK_SECRET',
    unset: 'not secured',
    secret: true,
    expected: 'one or more secrets separated by commas, none of them empty or with control characters',
    pattern: /^(?!\s)\P{Cc}+(?<!\s)$/u,
    description: 'What senders put in x-webhook-token; several, separated by commas, while one is rotated.',
  }),
  'webhook.attempts': count({
    env: 'WEBHOOK_ATTEMPTS',
    default: 10,
    min: 1,
    description: 'How often a delivery is tried before it is dead, unless its handler says otherwise.',
  }),
  'webhook.timeout': duration({
    env: 'WEBHOOK_TIMEOUT',
    default: 30_000,
    min: 1,
    max: 86_400_000,
    description: 'How many milliseconds an attempt may take, unless its handler says otherwise.',
  }),
  'webhook.concurrency': count({
    env: 'WEBHOOK_CONCURRENCY',
    default: 16,
    min: 1,
    description: 'How many deliveries a handler gets at the same time, unless it says otherwise.',
  }),
  'webhook.backoff': duration({
    env: 'WEBHOOK_BACKOFF',
    default: 1_000,
    min: 0,
    max: 86_400_000,
    description: 'The longest wait before the second attempt, in milliseconds; it doubles with each attempt.',
  }),
  'webhook.maxBackoff': duration({
    env: 'WEBHOOK_MAX_BACKOFF',
    default: 3_600_000,
    min: 0,
    max: 604_800_000,
    description: 'The longest wait of all between two attempts, in milliseconds.',
  }),
  'webhook.lease': duration({
    env: 'WEBHOOK_LEASE',
    default: 5_000,
    min: 500,
    max: 600_000,
    description: 'How many milliseconds after a process died another one takes over what it had in hand.',
  }),
  'webhook.handlerGrace': duration({
    env: 'WEBHOOK_HANDLER_GRACE',
    default: 900_000,
    min: 0,
    max: 2_592_000_000,
    description:
      'How many milliseconds a delivery waits for a handler or forward address that no process has any more before it is dead; 0: for ever.',
  }),
  'webhook.maxBodyBytes': count({
    env: 'WEBHOOK_MAX_BODY_BYTES',
    default: 1_048_576,
    min: 1,
    description: 'The largest request body of the webhook door, in bytes.',
  }),
  'webhook.maxBytesInFlight': count({
    env: 'WEBHOOK_MAX_BYTES_IN_FLIGHT',
    default: 67_108_864,
    min: 1,
    description: 'The most bytes of all bodies that the webhook door has in hand at the same time.',
  }),
  'webhook.retention': count({
    env: 'WEBHOOK_RETENTION',
    default: 30,
    description: 'After how many days a delivery is removed, unless it is still to be handled; 0: never.',
  }),
  'webhook.retentionBytes': count({
    env: 'WEBHOOK_RETENTION_BYTES',
    default: 0,
    description:
      'The size of the store, in bytes, above which the oldest deliveries that are done are removed; 0: any.',
  }),
  'log.level': choice({
    env: 'LOG_LEVEL',
    default: 'info',
    choices: ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'],
    description: 'What is logged at least (fatal, error, warn, info, debug, trace, silent).',
  }),
  profiles: list({
    env: 'PROFILES',
    default: [],
    expected: 'a list of names without control characters',
    pattern: /^\P{Cc}+$/u,
    description: 'Names shown as activeProfiles in /env.',
  }),
  'shutdown.linger': duration({
    env: 'SHUTDOWN_LINGER',
    default: 300,
    min: 0,
    max: 300_000,
    description:
      'How many milliseconds the doors keep answering, with "Connection: close", once the stop began, before they close.',
  }),
} as const satisfies Readonly<Record<string, Option<unknown>>>;

export type OptionKey = keyof typeof options;

/** The value of every option by its key, all sources merged. */
export type Settings = {
  readonly [K in OptionKey]: (typeof options)[K] extends Option<infer T> ? T : never;
};

/** The keys of all options, in the order of the documentation. */
export const optionKeys = Object.keys(options) as readonly OptionKey[];

/** The option by its key, for code that treats all options alike. */
export function optionOf(key: OptionKey): Option<unknown> {
  return options[key];
}

/** Whether there is an option of that key. */
export function isOptionKey(key: string): key is OptionKey {
  return Object.hasOwn(options, key);
}

/** Names the configuration module; not an option itself, since the module cannot name itself. */
export const moduleOption = {
  key: 'config',
  flag: '--config',
  env: 'CONFIG',
  default: 'portico.config.ts, .js or .json when it is there',
  description: 'The configuration module: settings and code of your own.',
} as const;
