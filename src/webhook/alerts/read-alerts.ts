import { readObject } from '../../config/schema/read-object.ts';
import { alertsSchema, deadAlertSchema } from '../../config/schema/webhook-alerts.ts';
import type { SecretResolver } from '../../config/sources/secret-resolver.ts';
import { isRecord } from '../../core/record.ts';
import { type ForwardSettings, readForwards } from '../forward/read-forwards.ts';

/** What is done about dead deliveries, validated. */
export interface DeadAlertSettings {
  /** Where alerts go; undefined: nowhere. */
  readonly address: ForwardSettings | undefined;
  /** Minimum time between two alerts about one target, in milliseconds. */
  readonly interval: number;
  /** With more dead jobs than this the health check says so. */
  readonly threshold: number;
  /** Whether the health check is DOWN then. */
  readonly down: boolean;
}

const FORWARD_KEYS = ['url', 'secrets', 'allowPrivate', 'timeout', 'attempts'];

/**
 * Reads `webhook.alerts`, which messages call `path`. Appends one line per problem to `problems`; with problems the
 * result is incomplete.
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
