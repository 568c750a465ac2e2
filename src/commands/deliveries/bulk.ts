import { setTimeout as delay } from 'node:timers/promises';
import { StoreUnavailableError } from '../../core/store-errors.ts';
import type { DeliveryLog } from '../../inbox/delivery-log.ts';
import type { Progress } from '../progress.ts';
import type { BulkAction, Refusal } from './bulk-action.ts';

/** Ids, so many of them as are done in one transaction. */
export type Batches = Iterable<readonly string[]> | AsyncIterable<readonly string[]>;

/** A refusal that is told one by one. */
export interface Refused {
  readonly id: string;
  readonly reason: Refusal;
}

/** How far a bulk operation came. */
export interface BulkResult {
  readonly done: number;
  /** How many were left as they were, by the reason. */
  readonly refused: ReadonlyMap<Refusal, number>;
  /** The first of them. */
  readonly examples: readonly Refused[];
  /** Why it ended before its end; undefined when it did not. */
  readonly stopped: 'interrupted' | StoreUnavailableError | undefined;
}

const MOST_EXAMPLES = 10_000;

/** Does something with deliveries, batch by batch, until they are through or the signal is aborted. */
export async function runBulk(
  action: BulkAction,
  log: DeliveryLog,
  batches: Batches,
  signal: AbortSignal,
  progress: Progress,
): Promise<BulkResult> {
  let done = 0;
  let seen = 0;
  const refused = new Map<Refusal, number>();
  const examples: Refused[] = [];
  let stopped: BulkResult['stopped'];

  const run = async (batch: readonly string[]) => {
    const began = performance.now();
    const results = await Promise.allSettled(batch.map((id) => action.act(log, id)));
    for (const [i, result] of results.entries()) {
      if (result.status === 'rejected') {
        if (!(result.reason instanceof StoreUnavailableError)) throw result.reason;
        stopped = result.reason;
      } else if (result.value === undefined) done++;
      else {
        refused.set(result.value, (refused.get(result.value) ?? 0) + 1);
        if (examples.length < MOST_EXAMPLES) examples.push({ id: batch[i] ?? '', reason: result.value });
      }
    }
    seen += batch.length;
    progress.update(seen);
    // Whoever else writes has the database for as long as this had it.
    await delay(performance.now() - began, undefined, { signal }).catch(() => {});
  };

  for await (const batch of batches) {
    if (signal.aborted) stopped = 'interrupted';
    if (stopped !== undefined) break;
    await run(batch);
  }
  return { done, refused, examples, stopped };
}
