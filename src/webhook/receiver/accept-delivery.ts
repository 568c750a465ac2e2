import { whenReady } from '../../core/maybe-promise.ts';
import type { Exchange, Reply } from '../../http/endpoint.ts';
import type { NewDelivery } from '../../inbox/delivery.ts';
import type { DeliveryIds } from '../../inbox/delivery-ids.ts';
import type { Appended, Inbox } from '../../inbox/inbox.ts';
import type { JobPlan } from '../job-plan.ts';
import type { Refusal } from '../schemes/scheme.ts';
import { ACKNOWLEDGED, TEXT_TYPE } from '../webhook-errors.ts';

/** What the endpoints of the receiver share. */
export interface ReceiverParts {
  readonly inbox: Pick<Inbox, 'append' | 'idOf'>;
  readonly ids: DeliveryIds;
  /** Largest body in bytes. */
  readonly bodyLimit: number;
  /** Where a request stands in a trace, as it is stored; null without one. */
  traceOf(exchange: Pick<Exchange, 'headers'>): string | null;
  /** Which jobs a delivery gets. */
  readonly plan: JobPlan;
  /** Called with each delivery once it is durable, or known already. */
  onAppended(delivery: NewDelivery, appended: Appended): void;
  /** Called with the reason of each refusal of a source's request. */
  onRefused(source: string, reason: Refusal): void;
}

/** What a request says, read by the rules of its source. */
type Received = Omit<NewDelivery, 'id' | 'receivedAt' | 'jobs' | 'trace'>;

/** Acknowledges a delivery, and names the stored one. */
const accepted = (id: string | undefined): Reply => ({
  status: 200,
  type: TEXT_TYPE,
  body: ACKNOWLEDGED,
  headers: id === undefined ? undefined : { 'x-delivery-id': id },
});

/**
 * Stores a delivery and only then acknowledges it (contract 4.4), a duplicate as well: with the id of the first, unless
 * that was removed meanwhile. `parsed` is what its body says.
 */
export function acceptDelivery(
  parts: ReceiverParts,
  exchange: Pick<Exchange, 'headers'>,
  received: Received,
  parsed: unknown,
): Promise<Reply> {
  const receivedAt = Date.now();
  const id = parts.ids.next(receivedAt);
  const facts = { ...received, id, receivedAt, trace: parts.traceOf(exchange) };
  const delivery = { ...facts, jobs: parts.plan(facts, parsed) };
  return parts.inbox.append(delivery).then((appended) => {
    parts.onAppended(delivery, appended);
    const { source, dedupKey } = received;
    if (appended === 'stored' || dedupKey === null) return accepted(id);
    return whenReady(parts.inbox.idOf(source, dedupKey), accepted);
  });
}
