import type { DeliveryFilter, DeliveryLog, DeliverySummary } from '../../inbox/delivery-log.ts';
import { deliveryPages } from '../../inbox/delivery-pages.ts';

/** Maximum number of deliveries in one batch, which is one transaction. */
const MAX_DELIVERIES = 100;
/** Maximum size of a batch in bytes: all its bodies are in memory at once. A larger delivery is a batch by itself. */
const MAX_BYTES = 8 * 1024 * 1024;
/** Number of ids in one batch when the sizes of the deliveries are not known. */
const NAMED = 10;

/** The deliveries that match a filter and had arrived when it was made. It can be read more than once. */
export interface Selection {
  /** Their number, undefined when interrupted; `onCounted` is called with each intermediate count. */
  count(signal: AbortSignal, onCounted: (count: number) => void): Promise<number | undefined>;
  /** Their ids, oldest first. */
  batches(): AsyncIterable<readonly string[]>;
}

/** Selects up to the newest delivery of this moment: later arrivals are not part of it. */
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
