import type { DeliveryFilter, DeliveryLog, DeliverySummary } from '../../inbox/delivery-log.ts';
import { deliveryPages } from '../../inbox/delivery-pages.ts';

/** Deliveries in one batch; it is one transaction. */
const MOST = 100;
/** The bodies of a batch are in memory at the same time; a larger one has a batch of its own. In bytes. */
const MOST_BYTES = 8 * 1024 * 1024;

/** The deliveries of a filter that arrived up to now, and can be gone through more than once. */
export interface Selection {
  /** How many there are; `onCounted` is told how far the count is. Undefined when it was interrupted. */
  count(signal: AbortSignal, onCounted: (count: number) => void): Promise<number | undefined>;
  /** Their ids, the oldest first. */
  batches(): AsyncIterable<readonly string[]>;
}

/** What a filter means at this moment, so that what arrives later, or comes back, is not gone through. */
export async function select(
  log: DeliveryLog,
  filter: DeliveryFilter,
  eligible: (delivery: DeliverySummary) => boolean,
): Promise<Selection> {
  const newest = (await log.list({}, 1)).items[0]?.seq ?? 0;
  async function* pages() {
    for await (const { items } of deliveryPages(log, filter, { cursor: { after: 0 } })) {
      yield items.filter((item) => item.seq <= newest && eligible(item));
      if ((items.at(-1)?.seq ?? 0) > newest) return;
    }
  }
  return {
    async count(signal, onCounted) {
      let count = 0;
      for await (const page of pages()) {
        if (signal.aborted) return undefined;
        count += page.length;
        onCounted(count);
      }
      return count;
    },
    async *batches() {
      for await (const page of pages()) yield* split(page);
    },
  };
}

function* split(page: readonly DeliverySummary[]): Iterable<readonly string[]> {
  let batch: string[] = [];
  let bytes = 0;
  for (const { id, size } of page) {
    if (batch.length === MOST || (batch.length > 0 && bytes + size > MOST_BYTES)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(id);
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}

/** Ids that were named, each once. Nothing is known of the sizes, so the batches are small. */
export function* namedBatches(ids: ReadonlySet<string>): Iterable<readonly string[]> {
  const all = [...ids];
  for (let i = 0; i < all.length; i += 10) yield all.slice(i, i + 10);
}
