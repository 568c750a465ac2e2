import type { Reply } from '../../http/endpoint.ts';
import type { NewDelivery } from '../../inbox/delivery.ts';
import type { DeliveryIds } from '../../inbox/delivery-ids.ts';
import type { Appended, Inbox } from '../../inbox/inbox.ts';
import type { JobPlan } from '../job-plan.ts';
import { ACKNOWLEDGED, TEXT_TYPE } from '../webhook-errors.ts';

/** Where deliveries are stored, and with which jobs. */
export interface AcceptOptions {
  readonly inbox: Inbox;
  readonly ids: DeliveryIds;
  /** Which jobs a delivery gets. */
  readonly plan: JobPlan;
  /** Called with each delivery once it is durable, or known already. */
  onAppended(delivery: NewDelivery, appended: Appended): void;
}

/** What a request says, read by the rules of its source. */
type Received = Omit<NewDelivery, 'id' | 'receivedAt' | 'jobs'>;

const ACCEPTED: Reply = { status: 200, type: TEXT_TYPE, body: ACKNOWLEDGED };

/** Stores a delivery and only then acknowledges it (contract 4.4), a duplicate as well. `parsed` is what its body says. */
export function acceptDelivery(options: AcceptOptions, received: Received, parsed: unknown): Promise<Reply> {
  const receivedAt = Date.now();
  const id = options.ids.next(receivedAt);
  const delivery = { ...received, id, receivedAt, jobs: options.plan(received.event, parsed) };
  return options.inbox.append(delivery).then((appended) => {
    options.onAppended(delivery, appended);
    return ACCEPTED;
  });
}
