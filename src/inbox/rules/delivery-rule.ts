import type { ReceivedDelivery } from './received-delivery.ts';

/**
 * Says whether a handler or forward address wants a delivery. It has to be synchronous, and to give the same answer for
 * the same delivery: after an error it is asked again.
 */
export type DeliveryPredicate = (delivery: ReceivedDelivery) => boolean | null | undefined;

/** Gives the key of a delivery, a JSON value; null and undefined mean that it is not ordered. Synchronous, as a filter. */
export type DeliveryKey = (delivery: ReceivedDelivery) => unknown;
