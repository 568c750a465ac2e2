import type { DeliveryFilter, DeliveryLog, DeliverySummary } from '../../inbox/delivery-log.ts';
import { deliveryPages } from '../../inbox/delivery-pages.ts';

/** Maximum number of deliveries in one batch, which is one transaction. */
const MAX_DELIVERIES = 100;
/** Maximum size of a batch in bytes: all its bodies are in memory at once. A larger delivery is a batch by itself. */
const MAX_BYTES = 8 * 1024 * 1024;
/** Number of ids in one batch when the sizes of the deliveries are not known. */
const NAMED = 10;

/** Deliveries, page by page, oldest first. */
export type Pages = AsyncIterable<readonly DeliverySummary[]>;

/**
 * Selects the deliveries that match a filter up to the newest delivery of this moment: later arrivals are not part of it.
 * What it resolves to reads them anew at each call.
 */
export async function select(
  log: DeliveryLog,
  filter: DeliveryFilter,
  eligible: (delivery: DeliverySummary) => boolean,
): Promise<() => Pages> {
  const newest = (await log.list({}, 1)).items[0]?.seq ?? 0;
  return async function* () {
    for await (const { items } of deliveryPages(log, filter, { cursor: { after: 0 } })) {
      yield items.filter((item) => item.seq <= newest && eligible(item));
      if ((items.at(-1)?.seq ?? 0) > newest) return;
    }
  };
}

/** Batches of the ids of deliveries. */
export async function* batchesOf(pages: Pages): AsyncIterable<readonly string[]> {
  for await (const page of pages) yield* split(page);
}

function* split(page: readonly DeliverySummary[]): Iterable<readonly string[]> {
  let batch: string[] = [];
  let bytes = 0;
  for (const { id, size } of page) {
    if (batch.length === MAX_DELIVERIES || (batch.length > 0 && bytes + size > MAX_BYTES)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(id);
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}

/** Batches of ids that the user named. */
export function* namedBatches(ids: ReadonlySet<string>): Iterable<readonly string[]> {
  const all = [...ids];
  for (let i = 0; i < all.length; i += NAMED) yield all.slice(i, i + NAMED);
}
