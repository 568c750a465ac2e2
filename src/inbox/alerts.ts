import { readObject } from '../config/schema/fields.ts';
import { alertsSchema, deadAlertSchema } from '../config/schema/webhook.ts';
import type { SecretResolver } from '../config/secrets.ts';
import { isRecord } from '../core/json.ts';
import { ALERT_SOURCE, DeliveryIds, type NewDelivery } from './delivery.ts';
import { PeriodicTask } from './dispatch/periodic-task.ts';
import { type ForwardSettings, readForwards } from './forward/forward.ts';
import type { Inbox } from './inbox.ts';
import { ALERT_CHECKPOINT, ALERT_PREFIX, type DeadLetters, MAX_COUNTED } from './inbox.ts';

/** The target of alerts about dead letters. */
export const ALERT_TARGET = `${ALERT_PREFIX}dead`;

const EVENT = 'portico.dead_letters';

/** An alert about the jobs of a target that died by `until`, in the format of Standard Webhooks. */
function alertDelivery(
  { target, count, since }: DeadLetters,
  until: number,
  { id, receivedAt }: Pick<NewDelivery, 'id' | 'receivedAt'>,
): NewDelivery {
  const data = {
    target,
    dead: count,
    // The store stops counting there.
    ...(count === MAX_COUNTED && { atLeast: true }),
    since: since === 0 ? null : new Date(since).toISOString(),
    until: new Date(until).toISOString(),
  };
  const body = { type: EVENT, timestamp: new Date(receivedAt).toISOString(), data };
  return {
    id,
    source: ALERT_SOURCE,
    event: EVENT,
    dataPointer: '/data',
    contentType: 'application/json',
    body: Buffer.from(JSON.stringify(body)),
    receivedAt,
    dedupKey: null,
    jobs: [{ target: ALERT_TARGET, orderKey: null }],
  };
}

interface DeadLetterAlertsOptions {
  readonly inbox: Pick<Inbox, 'clock' | 'deadLetters' | 'checkpoints'>;
  /** Minimum time between two alerts about one target, in milliseconds. */
  readonly interval: number;
  /** Called with each alert that this process has stored. */
  onStored(alert: NewDelivery): void;
  onError(error: unknown): void;
}

/** How often dead letters are checked, in milliseconds. */
const POLL = 1_000;
/**
 * An alert covers jobs that died at least this long ago, in milliseconds: commits in progress may add earlier
 * ones.
 */
export const SETTLING = 1_000;

/**
 * Stores an alert about each target with newly dead jobs: at most one per target and interval, for all
 * processes.
 */
export function deadLetterAlerts(options: DeadLetterAlertsOptions): PeriodicTask {
  const ids = new DeliveryIds();
  return new PeriodicTask(POLL, () => storeAlerts(options, ids).catch(options.onError));
}

/** Stores the alerts that are due. Rejects as the store does. */
export async function storeAlerts(
  { inbox, interval, onStored }: Omit<DeadLetterAlertsOptions, 'onError'>,
  ids: DeliveryIds,
): Promise<void> {
  const now = await inbox.clock();
  const until = now - SETTLING;
  for (const letters of await inbox.deadLetters(until, interval)) {
    const move = { name: `${ALERT_CHECKPOINT}${letters.target}`, from: letters.since, to: until };
    const alert = alertDelivery(letters, until, { id: ids.next(now), receivedAt: now });
    if ((await inbox.checkpoints.append(move, alert)) === 'stored') onStored(alert);
  }
}

/** The validated settings for dead deliveries. */
export interface DeadAlertSettings {
  /** Where alerts are sent; undefined: nowhere. */
  readonly address: ForwardSettings | undefined;
  /** Minimum time between two alerts about one target, in milliseconds. */
  readonly interval: number;
  /** The health check reports dead jobs if there are more than this. */
  readonly threshold: number;
  /** Whether the health check is then DOWN. */
  readonly down: boolean;
}

const FORWARD_KEYS = ['url', 'secrets', 'allowPrivate', 'timeout', 'attempts'];

/**
 * Reads `webhook.alerts`, called `path` in messages. Appends one line per problem to `problems`; with
 * problems the result is incomplete.
 */
export function readDeadAlert(
  value: unknown,
  path: string,
  resolve: SecretResolver,
  problems: string[],
): DeadAlertSettings {
  const none = { address: undefined, interval: 0, threshold: 0, down: false };
  const alerts = readObject(alertsSchema, { value: value ?? {}, path }, problems);
  const given = typeof alerts?.dead === 'string' ? { url: alerts.dead } : (alerts?.dead ?? {});
  const dead = readObject(deadAlertSchema, { value: given, path: `${path}.dead` }, problems);
  if (dead === undefined || !isRecord(given)) return none;
  const { interval, threshold, down, url } = dead;
  if (url === undefined) return { address: undefined, interval, threshold, down };
  const address = Object.fromEntries(Object.entries(given).filter(([key]) => FORWARD_KEYS.includes(key)));
  const [forward] = readForwards({ dead: address }, path, resolve, problems);
  return { address: forward, interval, threshold, down };
}
