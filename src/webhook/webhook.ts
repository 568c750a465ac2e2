import type { FastifyPluginAsync } from 'fastify';
import { ConfigError } from '../config/load.ts';
import { parseValue, type Setting } from '../config/options/option.ts';
import { isSettingKey, optionOf, type SettingKey } from '../config/options/options.ts';
import { createSecretResolver, type SecretResolver } from '../config/secrets.ts';
import {
  type AlertsConfig,
  type ForwardsConfig,
  type HandlerSpec,
  readHandlers,
  type SchedulesConfig,
} from '../inbox/config.ts';
import type { DeliveryHandler } from '../inbox/delivery.ts';
import { unreachableHandlers } from '../inbox/event-names.ts';
import { createEvents } from '../inbox/events.ts';
import { readForwards } from '../inbox/forward/forward.ts';
import type { Inbox } from '../inbox/inbox.ts';
import { isolationProblems } from '../inbox/isolate/isolated.ts';
import type { ReplayPlan } from '../inbox/operations.ts';
import { readDeadAlert } from '../inbox/producers.ts';
import { readSchedules } from '../inbox/schedules.ts';
import { createReplayPlan, createWork, type WorkSettings } from '../inbox/work.ts';
import type { Relation } from '../relations/relation.ts';
import type { SourcesConfig } from '../signatures/config.ts';
import { readSources, type SourceSettings } from '../signatures/sources.ts';
import { Metrics } from '../telemetry/metrics.ts';
import { RECEIVER_PATH, receiver } from './receiver.ts';

/**
 * The webhook door (CONTRACT.md#webhook-receipt) as a Fastify plugin. It starts handlers when the application
 * is ready, and finishes or releases running attempts when the application closes. Close the inbox after
 * that. Fails with ConfigError for invalid options.
 */
export const webhook: FastifyPluginAsync<WebhookOptions> = async (app, given) => {
  const { inbox, metrics } = given;
  const { stopTimeout, sources, secrets, headers, ...options } = readOptions(given);
  using building = new DisposableStack();
  // Without a registry, the events count in a private one.
  const meters = metrics ?? building.use(new Metrics());
  const events = building.use(createEvents(app.log, meters));
  const work = createWork({ ...options, inbox, metrics, log: app.log, events });

  const resources = building.move();
  app.addHook('onReady', async () => work.start());
  app.addHook('onClose', async () => {
    using _ = resources;
    await work.stop(AbortSignal.timeout(stopTimeout));
  });
  const { maxBodyBytes, maxBytesInFlight } = options.numbers;
  const limits = { maxBodyBytes, maxBytesInFlight };
  const refused = events.refused;
  app.register(receiver, {
    prefix: RECEIVER_PATH,
    inbox,
    work,
    secrets,
    sources,
    headers,
    ...limits,
    refused,
  });
};

/**
 * The plan by which portico/management's `deliveries` replays a delivery under these options. Throws
 * ConfigError.
 */
export function replayPlan(options: Pick<WebhookOptions, 'handlers' | 'sources' | 'forward'>): ReplayPlan {
  return createReplayPlan(readWork(options));
}

/** The settings `webhook.*` and `limits.webhook.*`, under the same names with the same defaults. */
const NUMBERS = [
  'attempts',
  'timeout',
  'concurrency',
  'backoff',
  'maxBackoff',
  'lease',
  'handlerGrace',
  'maxBodyBytes',
  'maxBytesInFlight',
  'retention',
  'retentionBytes',
  'dedupDays',
  'keptAttempts',
] as const;

/** The configured numbers of a webhook door. */
type WebhookNumbers = Readonly<Record<(typeof NUMBERS)[number], number>>;

/** The options of the webhook door. */
export interface WebhookOptions extends Partial<WebhookNumbers> {
  /** The store of deliveries. Its database must stay open until the application has closed. */
  readonly inbox: Inbox;
  /** Handlers by either name of the event; default none, which stores deliveries for a later replay. */
  readonly handlers?: Readonly<Record<string, DeliveryHandler | HandlerSpec>>;
  /** Signed senders by name, each at /webhook/<name>; default none. */
  readonly sources?: SourcesConfig;
  /** Forward addresses by name; default none. */
  readonly forward?: ForwardsConfig;
  /** Alerts about dead deliveries; default none. `backlogCheck` has the threshold of the health check. */
  readonly alerts?: AlertsConfig;
  /** Schedules, which store deliveries periodically, by name; default none. */
  readonly schedules?: SchedulesConfig;
  /**
   * The secrets that /webhook accepts in x-webhook-token; default none, which lets everyone send. A function
   * is called for each request, so that secrets can change.
   */
  readonly secrets?: readonly string[] | (() => readonly string[]);
  /** The headers that deliveries at /webhook keep; default none. Sources have their own lists. */
  readonly headers?: readonly string[];
  /** The registry for the meters of deliveries and attempts; default none. */
  readonly metrics?: Metrics;
  /** Timeout of running attempts once the application closes, in milliseconds; default 8,000. */
  readonly stopTimeout?: number;
}

/** Validates handlers, sources and forward addresses. Throws ConfigError with all problems. */
function readWork(
  given: Pick<WebhookOptions, 'handlers' | 'sources' | 'forward' | 'alerts' | 'schedules'>,
  problems: string[] = [],
) {
  const { sources, forward, alerts, schedules } = given;
  const resolver = createSecretResolver(process.env, process.cwd());
  const handlers = readHandlers({ value: given.handlers, path: 'options: webhook.handlers' }, problems);
  const settings = readWebhookSettings(
    { handlers, sources, forward, alerts, schedules },
    'options',
    resolver,
    problems,
  );
  problems.push(...isolationProblems(handlers, 'options: webhook.handlers'));
  if (problems.length > 0) throw new ConfigError(problems);
  return { ...settings, handlers };
}

/** Validates the plugin's options and adds defaults. Throws ConfigError with all problems. */
export function readOptions(given: WebhookOptions) {
  const problems: string[] = [];
  const numbers = NUMBERS.map((name) => [name, numberOf(name, given[name], problems)] as const);
  const { secrets = [], headers = [], stopTimeout = 8_000 } = given;
  check('headers', headers, problems);
  if (!Number.isSafeInteger(stopTimeout) || stopTimeout < 0) {
    problems.push('options: webhook.stopTimeout must be an integer from 0 up, in milliseconds');
  }
  return {
    ...readWork(given, problems),
    numbers: Object.fromEntries(numbers) as WebhookNumbers,
    headers: headers.map((name) => name.toLowerCase()),
    secrets: typeof secrets === 'function' ? secrets : () => secrets,
    stopTimeout,
  };
}

function numberOf(name: keyof WebhookNumbers, value: number | undefined, problems: string[]): number {
  if (value !== undefined) check(name, value, problems);
  return value ?? (optionNamed(name).default as number);
}

/** Checks a value by the rules of the service's option of the same name. */
function check(name: keyof WebhookNumbers | 'headers', value: unknown, problems: string[]): void {
  const at = { name: `options: webhook.${name}`, drop: 'leave it out' };
  const parsed = parseValue(optionNamed(name), at, value);
  if ('problem' in parsed) problems.push(parsed.problem);
}

function optionNamed(name: keyof WebhookNumbers | 'headers'): Setting<unknown> {
  const key = `webhook.${name}`;
  return optionOf(isSettingKey(key) ? key : (`limits.${key}` as SettingKey));
}

/** The configured sources, forward addresses, schedules and alerts. */
interface WebhookSettings extends Omit<WorkSettings, 'handlers'> {
  readonly sources: readonly SourceSettings[];
}

/** The keys of the webhook door in a module; only the handlers are validated. */
interface WebhookCode {
  readonly handlers: ReadonlyMap<string, HandlerSpec>;
  readonly sources?: unknown;
  readonly forward?: unknown;
  readonly alerts?: unknown;
  readonly schedules?: unknown;
}

/**
 * Reads the configuration of the webhook door, and checks that its handlers can be reached; `name` is the
 * module's name in messages. Addresses may get the changes of `relations`. Appends one line per problem to `problems`; the result is invalid if there are
 * any.
 */
export function readWebhookSettings(
  code: WebhookCode,
  name: string,
  resolve: SecretResolver,
  problems: string[],
  { relations = [] }: { readonly relations?: readonly Relation[] } = {},
): WebhookSettings {
  const before = problems.length;
  const sources = readSources(code.sources, `${name}: webhook.sources`, resolve, problems);
  const schedules = readSchedules(code.schedules, `${name}: webhook.schedules`, problems);
  // Skipped after an error: a source or schedule that cannot be read may be the one that reaches a handler.
  if (problems.length === before) {
    problems.push(...unreachableHandlers(code.handlers, sources, schedules, `${name}: webhook.handlers`));
  }
  return {
    sources,
    forwards: readForwards(code.forward, `${name}: webhook.forward`, resolve, problems, relations),
    schedules,
    deadAlert: readDeadAlert(code.alerts, `${name}: webhook.alerts`, resolve, problems),
  };
}
