import type { NewDelivery, NewJob } from '../delivery.ts';
import { SCHEDULE_SOURCE } from '../own-sources.ts';
import type { DeliveryFacts } from '../rules/received-delivery.ts';
import type { Schedule } from './schedule.ts';

/** Decides which jobs a delivery gets, from what is known of it and its parsed body. */
type Plan = (delivery: DeliveryFacts, body: unknown) => readonly NewJob[];

/**
 * The delivery of a schedule for a planned time. Its dedup key consists of both, so that a second one is a duplicate,
 * whatever a clock that was set back has made of the mark.
 */
export function scheduledDelivery(
  { name, event, data }: Schedule,
  planned: number,
  plan: Plan,
  { id, receivedAt }: Pick<NewDelivery, 'id' | 'receivedAt'>,
): NewDelivery {
  const plannedAt = new Date(planned).toISOString();
  const body = { event, data: { ...data, schedule: name, plannedAt } };
  const facts = { id, source: SCHEDULE_SOURCE, event, dataPointer: '/data', receivedAt };
  return {
    ...facts,
    contentType: 'application/json',
    body: Buffer.from(JSON.stringify(body)),
    dedupKey: `${name}@${plannedAt}`,
    jobs: plan(facts, body),
  };
}
