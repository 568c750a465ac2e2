import type { NewDelivery } from '../delivery.ts';
import { ALERT_SOURCE } from '../own-sources.ts';
import { ALERT_PREFIX, type DeadLetters, MAX_COUNTED } from './dead-letters.ts';

/** The target of alerts about dead letters. */
export const ALERT_TARGET = `${ALERT_PREFIX}dead`;

const EVENT = 'portico.dead_letters';

/** An alert about the jobs of a target that have died up to `until`. Its form is that of Standard Webhooks. */
export function alertDelivery(
  { target, count, since }: DeadLetters,
  until: number,
  { id, receivedAt }: Pick<NewDelivery, 'id' | 'receivedAt'>,
): NewDelivery {
  const data = {
    target,
    dead: count,
    // Beyond that nobody counts.
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
