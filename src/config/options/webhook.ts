import { LIMITS } from '@portico/transport/limits';
import { isKeepableHeader } from '../../core/redaction.ts';
import { count, inModule, list, port, toggle } from './option.ts';

/** The webhook door and the inbox. */
export const webhook = {
  port: port({
    env: 'PORT',
    default: 3000,
    help: 'Port of the webhook door; 0 picks a free one. unix:<path> for a Unix socket.',
  }),
  secret: list({
    env: 'WEBHOOK_SECRET',
    unset: 'not secured',
    secret: true,
    expected: 'one or more secrets separated by commas, none of them empty or with control characters',
    pattern: /^(?!\s)\P{Cc}+(?<!\s)$/u,
    help: 'Secrets that senders put in x-webhook-token, separated by commas; several during a rotation.',
    essential: true,
  }),
  attempts: count({
    env: 'WEBHOOK_ATTEMPTS',
    default: 10,
    min: 1,
    help: 'Maximum attempts before a delivery is dead, unless its handler overrides it.',
  }),
  timeout: count({
    unit: 'ms',
    default: 30_000,
    min: 1,
    max: 86_400_000,
    help: 'Timeout of an attempt, in milliseconds, unless its handler overrides it.',
  }),
  concurrency: count({
    env: 'WEBHOOK_CONCURRENCY',
    default: 16,
    min: 1,
    help: 'Maximum concurrent deliveries of a handler, unless it overrides it.',
  }),
  backoff: count({
    unit: 'ms',
    default: 1_000,
    min: 0,
    max: 86_400_000,
    help: 'Maximum delay before the second attempt, in milliseconds; it doubles with each attempt.',
  }),
  maxBackoff: count({
    unit: 'ms',
    default: 3_600_000,
    min: 0,
    max: 604_800_000,
    help: 'Upper bound on the delay between two attempts, in milliseconds.',
  }),
  lease: count({
    unit: 'ms',
    default: 5_000,
    min: 500,
    max: 600_000,
    help: 'Time after a crash of a process until another one claims its jobs, in milliseconds.',
  }),
  isolate: toggle({
    env: 'WEBHOOK_ISOLATE',
    default: false,
    help: 'Whether handlers of the configuration module run in worker threads, where a crash or a blocked event loop fails only one attempt. Handlers can override it.',
  }),
  isolateMemory: count({
    default: 128,
    min: 16,
    help: 'Maximum JavaScript heap of a worker thread of handlers, in MiB.',
  }),
  handlerGrace: count({
    unit: 'ms',
    default: 900_000,
    min: 0,
    max: 2_592_000_000,
    help: 'Time for which a delivery waits for a removed handler or forward address before it is dead, in milliseconds; 0 for no limit.',
  }),
  maxBodyBytes: count({
    default: 1_048_576,
    min: 1,
    help: 'Maximum body size of the webhook door, in bytes. Sources can override it.',
  }),
  maxBytesInFlight: count({
    default: LIMITS.maxBodies,
    min: 1,
    help: `Maximum memory of all bodies at the webhook door, in bytes. Beyond it, slow senders and clients that hold more than a quarter make room; if there are none, a body is a 503. The other doors have ${LIMITS.maxBodies / 1024 ** 2} MiB each.`,
  }),
  retention: count({
    env: 'WEBHOOK_RETENTION',
    default: 30,
    help: 'Retention of a delivery after its jobs have ended, or after its receipt if it has none, in days; 0 to keep it forever.',
    essential: true,
  }),
  retentionBytes: count({
    env: 'WEBHOOK_RETENTION_BYTES',
    default: 0,
    help: 'Size of the inbox above which Portico removes the deliveries that were handled first, in bytes; 0 for no limit.',
  }),
  dedupDays: count({
    default: 7,
    help: 'Time after receipt in which a repeat of a handled delivery is a duplicate even if retention has removed the delivery, in days; 0 for only as long as it is kept.',
  }),
  headers: list({
    env: 'WEBHOOK_HEADERS',
    default: [],
    expected: 'a list of header names, none of them for a secret (authorization, cookie, signature, token)',
    pattern: { test: isKeepableHeader },
    help: 'Headers to store with deliveries at /webhook itself, for handlers, forward addresses and operators. Each source has its own list.',
  }),
  keptAttempts: count({
    default: 20,
    help: 'Maximum attempts in the history of a job, in addition to the one that handled it; the oldest are dropped.',
  }),
  handlers: inModule({
    shape: '{ [event]: (delivery, { signal, log }) => void }',
    help: "Handlers by event, under the sender's name or Portico's. Instead of a function: `{ handler, when, order, concurrency, timeout, attempts, isolate }`. `when` is a condition or function that selects deliveries; `order` is a JSON pointer or function that gives a key, whose deliveries are handled one at a time; times are in milliseconds; `isolate: true` runs the handler in a worker thread.",
  }),
  sources: inModule({
    json: true,
    shape: '{ [name]: { scheme, secrets, ... } }',
    help: 'Signed senders, each at `/webhook/<name>`. `scheme` is standard, github, stripe, slack, shopify, gitlab, paypal, twilio, linear, clerk, resend, discord, hmac or token. Plain data, so also allowed in .json.',
  }),
  forward: inModule({
    json: true,
    shape: '{ [name]: { url, secrets, events, when, order, transform, rate, allowPrivate } }',
    help: 'Addresses to which Portico forwards deliveries, signed with Standard Webhooks if they have secrets: those of `events` that `when` selects, changed by `transform`, at most at a `rate` such as `10/s`. Plain data, so also allowed in .json; functions need a module.',
  }),
  alerts: inModule({
    json: true,
    shape: '{ dead: { url, secrets, allowPrivate, interval, threshold, down } }',
    help: 'Alerts about dead deliveries, sent like forwards: at most one per handler or forward address within `interval` milliseconds. Above `threshold` dead jobs the health check says so, and is DOWN with `down: true`. Plain data, so also allowed in .json.',
  }),
  schedules: inModule({
    json: true,
    shape: "{ [name]: '0 3 * * *' }",
    help: 'Scheduled deliveries by name. Instead of an expression: `{ cron, timezone, event, data, grace }`. The default time zone is UTC, the default event the name; `grace` is how late a missed delivery may still be stored, in milliseconds. Plain data, so also allowed in .json.',
  }),
  sending: inModule({
    json: true,
    shape: 'true',
    help: 'Sends events to the endpoints of customers, which the REST door manages at `/webhooks` and publishes at `/events`. Instead of true an object: `transforms` by name, `allowPrivate`, `attempts`, `timeout`, `backoff`, `maxBackoff`, `concurrency`, `concurrencyPerEndpoint`, `concurrencyPerTenant`, `disableAfterDays`, `changes` of relations that are published, and `portal: { port, url, origins, title }` for the page of customers. Plain data, so also allowed in .json, except for transformations that are functions.',
  }),
} as const;
