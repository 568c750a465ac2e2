import { setTimeout as delay } from 'node:timers/promises';
import { StoreUnavailableError } from '../../core/store-errors.ts';
import type { DeliveryLog, DeliveryStatus } from '../../inbox/delivery-log.ts';
import type { Progress } from '../terminal/progress.ts';

/** Why an action did not change a delivery. */
export const REFUSALS = {
  'not-found': 'there is no such delivery',
  open: 'it is still open; wait for its end, or discard it first',
  'no-handler': 'nothing handles it now',
  settled: 'nothing of it is open or dead',
} as const;

export type Refusal = keyof typeof REFUSALS;

/** An action on many deliveries. */
export interface BulkAction {
  /** As in "Replay 5 deliveries?". */
  readonly verb: string;
  /** The result of `act` for a changed delivery, and the key of the JSON summary. */
  readonly done: 'replayed' | 'discarded';
  /** Whether a filter may match deliveries of this status. */
  eligible(status: DeliveryStatus): boolean;
  /** Acts on one delivery. */
  act(log: DeliveryLog, id: string): Promise<BulkAction['done'] | Refusal>;
}

/** Lists of ids; on SQLite each is one transaction. */
export type Batches = Iterable<readonly string[]> | AsyncIterable<readonly string[]>;

/** The result of a bulk operation. */
export interface BulkResult {
  /** Number of deliveries that were changed. */
  readonly done: number;
  /** Number of deliveries that were not changed, by reason. */
  readonly refused: ReadonlyMap<Refusal, number>;
  /** The first 10,000 of them. */
  readonly examples: readonly { readonly id: string; readonly reason: Refusal }[];
  /** Why it stopped early; undefined when it is complete. */
  readonly stopped: 'interrupted' | StoreUnavailableError | undefined;
}

const MAX_EXAMPLES = 10_000;

/** Acts on deliveries batch by batch, until all are done, the database fails or the signal is aborted. */
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
  const examples: BulkResult['examples'][number][] = [];
  let stopped: BulkResult['stopped'];

  const run = async (batch: readonly string[]) => {
    const began = performance.now();
    const results: PromiseSettledResult<Awaited<ReturnType<BulkAction['act']>>>[] = [];
    while (results.length < batch.length) {
      const ids = batch.slice(results.length, results.length + log.maxChanges);
      results.push(...(await Promise.allSettled(ids.map((id) => action.act(log, id)))));
    }
    for (const [i, result] of results.entries()) {
      if (result.status === 'rejected') {
        if (!(result.reason instanceof StoreUnavailableError)) throw result.reason;
        stopped = result.reason;
      } else if (result.value === 'replayed' || result.value === 'discarded') done++;
      else {
        refused.set(result.value, (refused.get(result.value) ?? 0) + 1);
        if (examples.length < MAX_EXAMPLES) examples.push({ id: batch[i] ?? '', reason: result.value });
      }
    }
    seen += batch.length;
    progress.update(seen);
    // Leaves the database to other writers for as long as this batch took.
    await delay(performance.now() - began, undefined, { signal }).catch(() => {});
  };

  for await (const batch of batches) {
    if (signal.aborted) stopped = 'interrupted';
    if (stopped !== undefined) break;
    await run(batch);
  }
  return { done, refused, examples, stopped };
}
