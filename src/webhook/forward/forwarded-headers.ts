import type { StoredDelivery } from '../../inbox/delivery.ts';
import { type DeliveryHeaders, headersOf } from '../../inbox/delivery-headers.ts';
import { CONNECTION_HEADERS } from './connection-headers.ts';

const OF_THE_CONNECTION: ReadonlySet<string> = new Set(CONNECTION_HEADERS);

/** The kept headers of a delivery that are sent on; those that a forward sets itself take their place. */
export function forwardedHeaders(delivery: Pick<StoredDelivery, 'headers'>): DeliveryHeaders {
  const kept = Object.entries(headersOf(delivery));
  return Object.fromEntries(kept.filter(([name]) => !OF_THE_CONNECTION.has(name)));
}
