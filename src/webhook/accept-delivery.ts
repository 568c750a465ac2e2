import { randomUUIDv7 } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { NewDelivery } from '../inbox/delivery.ts';
import type { Appended, Inbox } from '../inbox/inbox.ts';
import { TEXT_TYPE } from './error-format.ts';
import type { JobPlan } from './job-plan.ts';

export interface AcceptOptions {
  readonly inbox: Inbox;
  /** Which jobs a delivery gets. */
  readonly plan: JobPlan;
  /** Told of each delivery once it is durable, or known already. */
  onAppended(delivery: NewDelivery, appended: Appended): void;
}

/** What a request says, read by the rules of its source. */
export interface Received {
  readonly source: string;
  readonly event: string | null;
  readonly dataPointer: string;
  readonly dedupKey: string | null;
  readonly body: Uint8Array;
  /** What the body says. */
  readonly parsed: unknown;
}

/**
 * Stores a delivery and only then acknowledges it; a duplicate is acknowledged as well (contract 4.4). What fails is
 * answered by the door's error handler.
 */
export function acceptDelivery(
  { inbox, plan, onAppended }: AcceptOptions,
  { parsed, ...received }: Received,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const delivery: NewDelivery = {
    id: randomUUIDv7(),
    ...received,
    contentType: contentTypeOf(request),
    receivedAt: Date.now(),
    jobs: plan(received.event, parsed),
  };
  inbox
    .append(delivery)
    .then((appended) => {
      onAppended(delivery, appended);
      reply.type(TEXT_TYPE).send('Webhook received');
    })
    .catch((error: unknown) => reply.send(error));
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
