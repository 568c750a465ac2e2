import type { ReceivedDelivery } from './received-delivery.ts';

/**
 * Says whether a handler or forward address wants a delivery. It has to be synchronous, and to give the same answer for
 * the same delivery: after an error it is asked again.
 */
export type DeliveryPredicate = (delivery: ReceivedDelivery) => boolean | null | undefined;

/** Gives the priority of a delivery, from 0 to 100; null and undefined mean 0. Synchronous, as a filter. */
export type DeliveryPriority = (delivery: ReceivedDelivery) => number | null | undefined;

/**
 * Gives the time before which a delivery is not handled, as a date, in milliseconds or as an ISO 8601 text; null and
 * undefined mean at once. Synchronous, as a filter.
 */
export type DeliveryTime = (delivery: ReceivedDelivery) => Date | number | string | null | undefined;

/** Gives the key of a delivery, a JSON value; null and undefined mean that it is not ordered. Synchronous, as a filter. */
export type DeliveryKey = (delivery: ReceivedDelivery) => unknown;
