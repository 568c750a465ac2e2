import type { MaybePromise } from '../../core/maybe-promise.ts';
import { JsonList } from './json-list.ts';
import type { ResultBudget } from './result-budget.ts';

/** Completes an item of a list. Throws, or rejects, when that makes the whole list null. */
export type CompleteItem = (value: unknown, index: number) => unknown;
/** Reads the next item. */
type Next = () => MaybePromise<IteratorResult<unknown>>;

/** Completes a list at once; one that takes longer than a slice of the event loop goes on in turns, and becomes text. */
export function completeList(
  budget: ResultBudget,
  list: Iterable<unknown>,
  complete: CompleteItem,
): MaybePromise<readonly unknown[] | JsonList> {
  const results: unknown[] = [];
  const items = list[Symbol.iterator]();
  let pending = false;
  try {
    for (;;) {
      if (budget.bytes >= budget.checkAt && budget.isSpent()) {
        return inTurns(budget, () => items.next(), results, complete);
      }
      const { done, value } = items.next();
      if (done === true) return pending ? Promise.all(results) : results;
      const completed = complete(value, results.length);
      if (completed instanceof Promise) pending = true;
      results.push(completed);
      count(budget, completed);
    }
  } catch (error) {
    ignoreErrors(results);
    ignoreRest(items);
    throw error;
  }
}

/** The same for a list whose items come one after the other. */
export async function completeAsyncList(
  budget: ResultBudget,
  list: AsyncIterable<unknown>,
  complete: CompleteItem,
): Promise<readonly unknown[] | JsonList> {
  const results: unknown[] = [];
  const iterator = list[Symbol.asyncIterator]();
  const next = () => iterator.next() as Promise<IteratorResult<unknown>>;
  try {
    for (;;) {
      if (budget.bytes >= budget.checkAt && budget.isSpent()) {
        return await inTurns(budget, next, results, complete);
      }
      const { done, value } = await next();
      if (done === true) return await Promise.all(results);
      if (budget.isClosed) throw new Error('The run has finished');
      const completed = complete(value, results.length);
      results.push(guarded(completed));
      count(budget, completed);
    }
  } catch (error) {
    // What is left of it is of no use, and its end is not waited for.
    Promise.resolve(iterator.return?.()).catch(() => {});
    throw error;
  }
}

/** Goes on with a list, a batch of items in each turn. */
async function inTurns(
  budget: ResultBudget,
  next: Next,
  begun: unknown[],
  complete: CompleteItem,
): Promise<JsonList> {
  const list = new JsonList(budget);
  let batch = begun;
  let index = begun.length;
  for (const completed of begun) guarded(completed);
  for (;;) {
    list.add(await settled(batch));
    await budget.turn();
    batch = [];
    do {
      const result = next();
      const { done, value } = result instanceof Promise ? await result : result;
      if (budget.isClosed) throw new Error('The run has finished');
      if (done === true) {
        list.add(await settled(batch));
        return list;
      }
      const completed = complete(value, index++);
      batch.push(guarded(completed));
      count(budget, completed);
    } while (budget.bytes < budget.checkAt || !budget.isSpent());
  }
}

/** Counts an item: at least one character, or its text; what is in an object has been counted. */
function count(budget: ResultBudget, completed: unknown): void {
  budget.values += 1;
  budget.bytes += typeof completed === 'string' ? completed.length + 1 : 1;
}

function settled(batch: readonly unknown[]): MaybePromise<readonly unknown[]> {
  return batch.some((completed) => completed instanceof Promise) ? Promise.all(batch) : batch;
}

/** A promise that may fail before it is waited for. */
function guarded(completed: unknown): unknown {
  if (completed instanceof Promise) completed.catch(() => {});
  return completed;
}

/** Ignores errors of items that nobody waits for any more. */
function ignoreRest(items: Iterator<unknown>): void {
  try {
    for (let next = items.next(); next.done !== true; next = items.next()) guarded(next.value);
  } catch {
    // The list failed once more; the first failure is told.
  }
}

/** Ignores errors of pending values that are not in the result any more. */
export function ignoreErrors(values: Iterable<unknown>): void {
  for (const value of values) guarded(value);
}
