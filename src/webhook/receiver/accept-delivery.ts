import type { FastifyReply, FastifyRequest } from 'fastify';
import type { NewDelivery } from '../../inbox/delivery.ts';
import type { DeliveryIds } from '../../inbox/delivery-ids.ts';
import type { Appended, Inbox } from '../../inbox/inbox.ts';
import type { JobPlan } from '../job-plan.ts';
import { ACKNOWLEDGED, TEXT_TYPE } from '../webhook-errors.ts';
import type { Received } from './received.ts';

export interface AcceptOptions {
  readonly inbox: Inbox;
  readonly ids: DeliveryIds;
  /** Which jobs a delivery gets. */
  readonly plan: JobPlan;
  /** Told of each delivery once it is durable, or known already. */
  onAppended(delivery: NewDelivery, appended: Appended): void;
}

/** The delivery that a request hands in now, with its jobs. */
export function newDelivery({ ids, plan }: AcceptOptions, received: Received): NewDelivery {
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

/**
 * Stores a delivery and only then acknowledges it (contract 4.4), a duplicate as well; what fails, be it an Error or
 * not, is the framework's to refuse.
 */
export function acceptDelivery(
  options: AcceptOptions,
  received: Received,
  reply: FastifyReply,
): Promise<void> {
  const delivery = newDelivery(options, received);
  return options.inbox.append(delivery).then((appended) => {
    options.onAppended(delivery, appended);
    reply.type(TEXT_TYPE).send(ACKNOWLEDGED);
  });
}

/** The body of a request as it came; empty when there was none. */
export function bodyOf({ body }: FastifyRequest): Uint8Array {
  return body instanceof Uint8Array ? body : new Uint8Array();
}

/** The body is read whatever it is labelled, so its label stands only where it came in. */
export function contentTypeOf({ raw: { rawHeaders } }: FastifyRequest): string | null {
  const name = rawHeaders.findIndex((text, i) => i % 2 === 0 && text.toLowerCase() === 'content-type');
  return name === -1 ? null : (rawHeaders[name + 1] ?? null);
}
