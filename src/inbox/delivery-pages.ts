import { setImmediate as nextTick } from 'node:timers/promises';
import type { DeliveryCursor, DeliveryFilter, DeliveryLog, DeliveryPage } from './delivery-log.ts';

export interface DeliveryPagesOptions {
  readonly cursor?: DeliveryCursor;
  /** Maximum number of deliveries over all pages; default all. */
  readonly limit?: number;
  /** Maximum number of pages, matches or not; default all. */
  readonly pages?: number;
}

/** Maximum number of deliveries per page, which bounds memory. */
const PAGE = 500;

/**
 * Yields matching deliveries page by page, without a cursor from the newest. The event loop runs other work between two
 * pages. The `next` of the last page says where to continue.
 */
export async function* deliveryPages(
  log: Pick<DeliveryLog, 'list'>,
  filter: DeliveryFilter,
  { cursor, limit = Number.POSITIVE_INFINITY, pages = Number.POSITIVE_INFINITY }: DeliveryPagesOptions = {},
): AsyncGenerator<DeliveryPage, void> {
  let at = cursor;
  let left = limit;
  for (let count = 0; count < pages; count++) {
    const page = await log.list(filter, Math.min(PAGE, left), at);
    yield page;
    left -= page.items.length;
    if (page.next === undefined || left <= 0) return;
    at = cursor !== undefined && 'after' in cursor ? { after: page.next } : { before: page.next };
    await nextTick();
  }
}
