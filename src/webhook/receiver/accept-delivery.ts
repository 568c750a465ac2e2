import type { Reply } from '../../http/endpoint.ts';
import type { NewDelivery } from '../../inbox/delivery.ts';
import type { DeliveryIds } from '../../inbox/delivery-ids.ts';
import type { Appended, Inbox } from '../../inbox/inbox.ts';
import type { JobPlan } from '../job-plan.ts';
import { ACKNOWLEDGED, TEXT_TYPE } from '../webhook-errors.ts';
import type { Received } from './received.ts';

/** Where deliveries are stored, and with which jobs. */
export interface AcceptOptions {
  readonly inbox: Inbox;
  readonly ids: DeliveryIds;
  /** Which jobs a delivery gets. */
  readonly plan: JobPlan;
  /** Called with each delivery once it is durable, or known already. */
  onAppended(delivery: NewDelivery, appended: Appended): void;
}

const ACCEPTED: Reply = { status: 200, type: TEXT_TYPE, body: ACKNOWLEDGED };

/** Stores a delivery and only then acknowledges it (contract 4.4), a duplicate as well. */
export function acceptDelivery(options: AcceptOptions, received: Received): Promise<Reply> {
  const delivery = newDelivery(options, received);
  return options.inbox.append(delivery).then((appended) => {
    options.onAppended(delivery, appended);
    return ACCEPTED;
  });
}

function newDelivery({ ids, plan }: AcceptOptions, received: Received): NewDelivery {
  const receivedAt = Date.now();
  const { source, event, dataPointer, dedupKey, contentType, body, parsed } = received;
  return {
    id: ids.next(receivedAt),
    source,
    event,
    dataPointer,
    dedupKey,
    contentType,
    body,
    receivedAt,
    jobs: plan(event, parsed),
  };
}
