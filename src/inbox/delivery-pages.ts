import { setImmediate as otherTurns } from 'node:timers/promises';
import type { DeliveryCursor, DeliveryFilter, DeliveryLog, DeliveryPage } from './delivery-log.ts';

export interface DeliveryPagesOptions {
  readonly cursor?: DeliveryCursor;
  /** Deliveries of all pages together; default all. */
  readonly limit?: number;
  /** After so many pages it stops, found or not; default never. */
  readonly pages?: number;
}

/** Deliveries in one page: it is what is in memory at a time. */
const PAGE = 500;

/**
 * The deliveries that match, page by page, from the newest on when there is no cursor. Between two pages other work
 * has its turn. The `next` of the last page says where to go on.
 */
export async function* deliveryPages(
  log: Pick<DeliveryLog, 'list'>,
  filter: DeliveryFilter,
  { cursor, limit = Number.POSITIVE_INFINITY, pages = Number.POSITIVE_INFINITY }: DeliveryPagesOptions = {},
): AsyncGenerator<DeliveryPage, void> {
  let at = cursor;
  let left = limit;
  for (let turn = 0; turn < pages; turn++) {
    const page = await log.list(filter, Math.min(PAGE, left), at);
    yield page;
    left -= page.items.length;
    if (page.next === undefined || left <= 0) return;
    at = cursor !== undefined && 'after' in cursor ? { after: page.next } : { before: page.next };
    await otherTurns();
  }
}
