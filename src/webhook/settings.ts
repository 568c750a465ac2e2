import type { ConfigCode } from '../config/schema/code.ts';
import type { SecretResolver } from '../config/sources/secret-resolver.ts';
import type { Schedule } from '../inbox/schedules/schedule.ts';
import { type DeadAlertSettings, readDeadAlert } from './alerts/read-alerts.ts';
import { type ForwardSettings, readForwards } from './forward/read-forwards.ts';
import { readSchedules } from './schedules/read-schedules.ts';
import { readSources } from './sources/read-sources.ts';
import type { SourceSettings } from './sources/source.ts';

/** The configured sources, forward addresses, schedules and alerts. */
export interface WebhookSettings {
  readonly sources: readonly SourceSettings[];
  readonly forwards: readonly ForwardSettings[];
  readonly schedules: readonly Schedule[];
  readonly deadAlert: DeadAlertSettings;
}

/**
 * Reads the data that configures the webhook door; `name` is the module's name in messages. Errors are
 * added to `problems`, one line each; the result is then invalid.
 */
export function readWebhookSettings(
  { sources, forward, alerts, schedules }: Pick<ConfigCode, 'sources' | 'forward' | 'alerts' | 'schedules'>,
  name: string,
  resolve: SecretResolver,
  problems: string[],
): WebhookSettings {
  return {
    sources: readSources(sources, `${name}: webhook.sources`, resolve, problems),
    forwards: readForwards(forward, `${name}: webhook.forward`, resolve, problems),
    schedules: readSchedules(schedules, `${name}: webhook.schedules`, problems),
    deadAlert: readDeadAlert(alerts, `${name}: webhook.alerts`, resolve, problems),
  };
}
