import type { NewDelivery } from '../../inbox/delivery.ts';
import { USERS_SOURCE } from '../../inbox/own-sources.ts';
import type { UserEvent } from '../../users/user-event.ts';
import type { JobPlan } from '../job-plan.ts';

/** What addresses are told of a change of a user. */
export function changeEvent(type: UserEvent['type']): string {
  return `user.${type}`;
}

/**
 * The delivery of a change of a user; undefined where no address wants it. Its form is that of Standard Webhooks. The
 * changes of one user are sent in their order, unless the address has an order of its own.
 */
export function changeDelivery(
  { type, at, json }: UserEvent,
  plan: JobPlan,
  { id, receivedAt }: Pick<NewDelivery, 'id' | 'receivedAt'>,
): NewDelivery | undefined {
  const event = changeEvent(type);
  const data = JSON.parse(json) as { readonly id: number };
  const body = { type: event, timestamp: new Date(at).toISOString(), data };
  const facts = { id, source: USERS_SOURCE, event, dataPointer: '/data', receivedAt };
  const jobs = plan(facts, body);
  if (jobs.length === 0) return undefined;
  return {
    ...facts,
    contentType: 'application/json',
    body: Buffer.from(JSON.stringify(body)),
    dedupKey: null,
    jobs: jobs.map((job) => ({ ...job, orderKey: job.orderKey ?? String(data.id) })),
  };
}
