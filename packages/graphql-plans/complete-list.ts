import { isThenable, type MaybePromise } from '../../src/core/scheduler.ts';
import { JsonList, type ResultBudget } from './results.ts';
import { type Run, track } from './run.ts';

/** Completes a list item. Throws or rejects if that makes the whole list null. */
type CompleteItem = (value: unknown, index: number) => unknown;
/** Reads the next item. */
type Next = () => MaybePromise<IteratorResult<unknown>>;

/**
 * Completes a list. If that takes longer than a time slice of the event loop, it continues in later slices
 * and produces text. `isPlain`: no item is a promise.
 */
export function completeList(
  run: Run,
  list: Iterable<unknown>,
  complete: CompleteItem,
  isPlain: boolean,
): MaybePromise<readonly unknown[] | JsonList> {
  const { budget } = run;
  if (Array.isArray(list)) return completeArray(run, list, complete, isPlain);
  const results: unknown[] = [];
  const iterator = list[Symbol.iterator]();
  let pending = false;
  try {
    for (;;) {
      if (budget.bytes >= budget.checkAt && budget.isSpent()) {
        return restInTurns(run, iterator, results, complete);
      }
      const iteration = iterator.next();
      if (iteration.done) break;
      const completed = complete(iteration.value, results.length);
      if (completed instanceof Promise) pending = true;
      results.push(completed);
      count(budget, completed);
    }
  } catch (error) {
    track(results);
    abandon(budget, iterator);
    throw error;
  }
  return pending ? Promise.all(results) : results;
}

/**
 * Like `completeList` without an iterator, which would add a tenth to the cost of a list of small objects.
 */
function completeArray(
  run: Run,
  list: readonly unknown[],
  complete: CompleteItem,
  isPlain: boolean,
): MaybePromise<readonly unknown[] | JsonList> {
  const { budget } = run;
  const results: unknown[] = [];
  let pending = false;
  let index = 0;
  try {
    while (index < list.length) {
      if (budget.bytes >= budget.checkAt && budget.isSpent()) {
        if (!isPlain) trackRest(run, list, index);
        return inTurns(budget, itemsFrom(list, index), results, complete);
      }
      const completed = complete(list[index], index++);
      if (completed instanceof Promise) pending = true;
      results.push(completed);
      count(budget, completed);
    }
  } catch (error) {
    track(results);
    if (!isPlain) trackRest(run, list, index);
    throw error;
  }
  return pending ? Promise.all(results) : results;
}

function itemsFrom(list: readonly unknown[], start: number): Next {
  let index = start;
  return () =>
    index < list.length ? { done: false, value: list[index++] } : { done: true, value: undefined };
}

/**
 * Handles rejections of promises from `start` on: one that rejects before its turn, or after the list has
 * failed, would be unhandled and end the process.
 */
function trackRest(run: Run, list: readonly unknown[], start: number): void {
  if (!run.isFirstLook(list)) return;
  for (let index = start; index < list.length; index++) {
    const item = list[index];
    if (isThenable(item)) track([item]);
  }
}

function restInTurns(
  run: Run,
  iterator: Iterator<unknown>,
  begun: unknown[],
  complete: CompleteItem,
): Promise<JsonList> {
  const { budget } = run;
  if (iterator.return === undefined) {
    // Reading ahead is safe: the items of a Set or a Map exist already.
    const rest: unknown[] = [];
    for (let next = iterator.next(); !next.done; next = iterator.next()) {
      if (rest.push(next.value) > budget.maxValues) break;
    }
    track(rest);
    return inTurns(budget, itemsFrom(rest, 0), begun, complete);
  }
  return inTurns(budget, () => iterator.next(), begun, complete).catch((error: unknown) => {
    abandon(budget, iterator);
    throw error;
  });
}

/** Like `completeList`, for an async iterable. */
export async function completeAsyncList(
  run: Run,
  list: AsyncIterable<unknown>,
  complete: CompleteItem,
): Promise<readonly unknown[] | JsonList> {
  const { budget } = run;
  const results: unknown[] = [];
  const iterator = list[Symbol.asyncIterator]();
  const next = () => iterator.next() as Promise<IteratorResult<unknown>>;
  let pending = false;
  try {
    for (;;) {
      if (budget.bytes >= budget.checkAt && budget.isSpent()) {
        return await inTurns(budget, next, results, complete);
      }
      const iteration = await next();
      if (iteration.done) break;
      if (run.finished) throw new Error('The run has finished');
      const completed = complete(iteration.value, results.length);
      if (completed instanceof Promise) pending = true;
      results.push(guarded(completed));
      count(budget, completed);
    }
  } catch (error) {
    // The remaining items are not needed, and closing the iterator is not awaited.
    void closeQuietly(iterator);
    throw error;
  }
  return pending ? Promise.all(results) : results;
}

/** Continues a list in time slices, one batch of items in each. */
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
    await addTo(list, batch);
    await budget.turn();
    batch = [];
    do {
      const result = next();
      const { done, value } = result instanceof Promise ? await result : result;
      if (budget.isClosed) throw new Error('The run has finished');
      if (done === true) {
        await addTo(list, batch);
        return list;
      }
      const completed = complete(value, index++);
      batch.push(guarded(completed));
      count(budget, completed);
    } while (budget.bytes < budget.checkAt || !budget.isSpent());
  }
}

/** Counts an item: its text, or at least one character; the fields of an object are counted already. */
function count(budget: ResultBudget, completed: unknown): void {
  budget.values += 1;
  budget.bytes += typeof completed === 'string' ? completed.length + 1 : 1;
}

/** Only an item that continued in a later slice, and so is a promise, can contain a list of text. */
function addTo(list: JsonList, batch: readonly unknown[]): MaybePromise<void> {
  if (!batch.some((completed) => completed instanceof Promise)) return list.add(batch);
  return Promise.all(batch).then((items) => list.addWithLists(items));
}

/** Marks a promise as handled, because it may reject before it is awaited. */
function guarded(completed: unknown): unknown {
  if (completed instanceof Promise) completed.catch(() => {});
  return completed;
}

/**
 * Abandons the iterator of a failed list. Like GraphQL.js, it reads the remaining items to handle their
 * rejections, but no more items than a result may have.
 */
function abandon(budget: ResultBudget, iterator: Iterator<unknown>): void {
  const makesItems = iterator.return !== undefined;
  let left = makesItems && (budget.isClosed || budget.exceeded !== undefined) ? 0 : budget.maxValues;
  try {
    for (; left > 0; left--) {
      const iteration = iterator.next();
      if (iteration.done) return;
      if (isThenable(iteration.value)) track([iteration.value]);
    }
    iterator.return?.();
  } catch {
    // The list has failed already.
  }
}

async function closeQuietly(iterator: AsyncIterator<unknown>): Promise<void> {
  try {
    await iterator.return?.();
  } catch {
    // The list has failed already.
  }
}
