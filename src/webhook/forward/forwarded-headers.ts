import type { StoredDelivery } from '../../inbox/delivery.ts';
import { type DeliveryHeaders, headersOf } from '../../inbox/delivery-headers.ts';

/** Headers of the connection and the transfer (RFC 9110), which belong to the request that came. */
const OF_THE_CONNECTION: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** The kept headers of a delivery that are sent on; those that a forward sets itself take their place. */
export function forwardedHeaders(delivery: Pick<StoredDelivery, 'headers'>): DeliveryHeaders {
  const kept = Object.entries(headersOf(delivery));
  return Object.fromEntries(kept.filter(([name]) => !OF_THE_CONNECTION.has(name)));
}
