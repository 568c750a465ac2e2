import { parsePointer, valueAt } from '../../core/json-pointer.ts';
import type { StoredDelivery } from '../delivery.ts';

/** A delivery as the functions of rules (filters, orders, priorities, times) and transformations get it. */
export interface ReceivedDelivery {
  readonly id: string;
  /** The name of the signed source that sent it; empty for /webhook itself. */
  readonly source: string;
  /**
   * The kind of event; null when the request names none. The rules of a handler get it by the name that the handler has,
   * a forward address by the name that the event has in Portico.
   */
  readonly event: string | null;
  /** The kind of event by the sender's own name; the same as `event`, unless the source renames it. */
  readonly senderEvent: string | null;
  /** What the body says, not validated. */
  readonly body: unknown;
  /** The part of the body that handlers get as their data. */
  readonly data: unknown;
  readonly receivedAt: Date;
}

/** What is known of a delivery beside its body. */
export type DeliveryFacts = Pick<
  StoredDelivery,
  'id' | 'source' | 'event' | 'senderEvent' | 'dataPointer' | 'receivedAt'
>;

/** `body` is the parsed one. */
export function receivedDelivery(
  { id, source, event, senderEvent, dataPointer, receivedAt }: DeliveryFacts,
  body: unknown,
): ReceivedDelivery {
  const data = valueAt(body, parsePointer(dataPointer) ?? []);
  const names = { event, senderEvent: senderEvent ?? event };
  return { id, source, ...names, body, data, receivedAt: new Date(receivedAt) };
}
