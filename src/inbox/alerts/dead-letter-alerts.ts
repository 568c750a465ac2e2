import type { NewDelivery } from '../delivery.ts';
import { DeliveryIds } from '../delivery-ids.ts';
import { PeriodicTask } from '../dispatch/periodic-task.ts';
import type { Inbox } from '../inbox.ts';
import { alertDelivery } from './alert-delivery.ts';
import { ALERT_MARK } from './dead-letters.ts';

export interface DeadLetterAlertsOptions {
  readonly inbox: Pick<Inbox, 'clock' | 'deadLetters' | 'marks'>;
  /** Minimum time between two alerts about one target, in milliseconds. */
  readonly interval: number;
  /** Called with each alert that this process has stored. */
  onStored(alert: NewDelivery): void;
  onError(error: unknown): void;
}

/** How often dead letters are looked for, in milliseconds. */
const POLL = 1_000;
/** An alert is about what had died this long before, in milliseconds: commits under way may still add to that. */
export const SETTLING = 1_000;

/** Stores an alert about each target of which jobs have died, at most one per target and interval on the database. */
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
    const move = { name: `${ALERT_MARK}${letters.target}`, from: letters.since, to: until };
    const alert = alertDelivery(letters, until, { id: ids.next(now), receivedAt: now });
    if ((await inbox.marks.append(move, alert)) === 'stored') onStored(alert);
  }
}
