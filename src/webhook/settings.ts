import type { ConfigCode } from '../config/schema/code.ts';
import type { SecretResolver } from '../config/sources/secret-resolver.ts';
import type { Schedule } from '../inbox/schedules/schedule.ts';
import { type DeadAlertSettings, readDeadAlert } from './alerts/read-alerts.ts';
import { unreachableHandlers } from './event-names.ts';
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
 * Reads the data that configures the webhook door, and checks that its handlers can be reached; `name` is the module's
 * name in messages. Errors are added to `problems`, one line each; the result is then invalid.
 */
export function readWebhookSettings(
  code: Pick<ConfigCode, 'handlers' | 'sources' | 'forward' | 'alerts' | 'schedules'>,
  name: string,
  resolve: SecretResolver,
  problems: string[],
): WebhookSettings {
  const before = problems.length;
  const sources = readSources(code.sources, `${name}: webhook.sources`, resolve, problems);
  const schedules = readSchedules(code.schedules, `${name}: webhook.schedules`, problems);
  // A source or a schedule that cannot be read may be what reaches a handler.
  if (problems.length === before) {
    problems.push(...unreachableHandlers(code.handlers, sources, schedules, `${name}: webhook.handlers`));
  }
  return {
    sources,
    forwards: readForwards(code.forward, `${name}: webhook.forward`, resolve, problems),
    schedules,
    deadAlert: readDeadAlert(code.alerts, `${name}: webhook.alerts`, resolve, problems),
  };
}
