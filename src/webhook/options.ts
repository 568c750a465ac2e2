import { ConfigError } from '../config/config-error.ts';
import { options as table } from '../config/options/options.ts';
import { parseValue } from '../config/options/parse.ts';
import { type HandlerSpec, readHandlers } from '../config/schema/module-handlers.ts';
import type { ForwardsConfig } from '../config/schema/webhook-forwards.ts';
import type { SourcesConfig } from '../config/schema/webhook-sources.ts';
import { createSecretResolver } from '../config/sources/secret-resolver.ts';
import type { DeliveryHandler } from '../inbox/handler.ts';
import type { Inbox } from '../inbox/inbox.ts';
import type { Metrics } from '../observability/metrics/metrics.ts';
import { readWebhookSettings } from './settings.ts';

/** The numbers of the service's options `webhook.*`, under the same names and with the same defaults. */
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
] as const;

type Numbers = Readonly<Record<(typeof NUMBERS)[number], number>>;

export interface WebhookOptions extends Partial<Numbers> {
  /** Where deliveries are kept, of a database that is open until the application has closed. */
  readonly inbox: Inbox;
  /** What is done with deliveries, by their event; default nothing: they are stored and wait for a replay. */
  readonly handlers?: Readonly<Record<string, DeliveryHandler | HandlerSpec>>;
  /** Signed senders by name, each at /webhook/<name>; default none. */
  readonly sources?: SourcesConfig;
  /** Addresses that deliveries are sent on to, by name; default none. */
  readonly forward?: ForwardsConfig;
  /**
   * The shared secrets that are accepted in x-webhook-token at /webhook itself; default none: everybody may send.
   * As a function they are asked for at each request, so that they can change.
   */
  readonly secrets?: readonly string[] | (() => readonly string[]);
  /** Where deliveries and attempts are counted and timed; default nowhere. */
  readonly metrics?: Metrics;
  /** How long attempts under way may take once the application closes, in milliseconds; default 8,000. */
  readonly stopTimeout?: number;
}

const DAY = 86_400_000;

/** What is done with deliveries, and where they may come from, checked. Throws ConfigError. */
export function readWork(
  given: Pick<WebhookOptions, 'handlers' | 'sources' | 'forward'>,
  problems: string[] = [],
) {
  const { sources, forward } = given;
  const resolver = createSecretResolver(process.env, process.cwd());
  const settings = readWebhookSettings({ sources, forward }, 'options', resolver, problems);
  const handlers = readHandlers({ value: given.handlers, path: 'options: webhook.handlers' }, problems);
  if (problems.length > 0) throw new ConfigError(problems);
  return { ...settings, handlers };
}

/** The options, checked, with what holds when nobody says. Throws ConfigError with everything that is wrong. */
export function readOptions(given: WebhookOptions) {
  const problems: string[] = [];
  const numbers = Object.fromEntries(
    NUMBERS.map((name) => [name, numberOf(name, given[name], problems)]),
  ) as Numbers;
  const { attempts, timeout, concurrency, backoff, maxBackoff, retention, ...rest } = numbers;
  const { secrets = [] } = given;
  return {
    ...readWork(given, problems),
    ...rest,
    secrets: typeof secrets === 'function' ? secrets : () => secrets,
    defaults: { concurrency, timeout, maxAttempts: attempts, backoff: { base: backoff, cap: maxBackoff } },
    retention: retention * DAY,
    stopTimeout: given.stopTimeout ?? 8_000,
  };
}

function numberOf(name: (typeof NUMBERS)[number], value: number | undefined, problems: string[]): number {
  const option = table[`webhook.${name}`];
  if (value === undefined) return option.default;
  const parsed = parseValue(option, { name: `options: webhook.${name}`, drop: 'leave it out' }, value);
  if ('problem' in parsed) problems.push(parsed.problem);
  return value;
}
