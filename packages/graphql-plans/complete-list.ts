import { isThenable, type MaybePromise } from '../../src/core/maybe-promise.ts';
import { JsonList, type ResultBudget } from './results.ts';
import { type Run, track } from './run.ts';

/** Completes an item of a list. Throws, or rejects, when that makes the whole list null. */
type CompleteItem = (value: unknown, index: number) => unknown;
/** Reads the next item. */
type Next = () => MaybePromise<IteratorResult<unknown>>;

/**
 * Completes a list at once; one that takes longer than a slice of the event loop goes on in turns, and becomes text.
 * `isPlain`: its items are data, none is a promise.
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
    leave(budget, iterator);
    throw error;
  }
  return pending ? Promise.all(results) : results;
}

/** The same without an iterator, which would cost a tenth of a list of small objects. */
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
 * Looks for promises from `start` on: one that fails before its turn, or after the list has failed, would be nobody's and
 * end the process.
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
    // The items of a Set or a Map are there already.
    const rest: unknown[] = [];
    for (let next = iterator.next(); !next.done; next = iterator.next()) {
      if (rest.push(next.value) > budget.maxValues) break;
    }
    track(rest);
    return inTurns(budget, itemsFrom(rest, 0), begun, complete);
  }
  return inTurns(budget, () => iterator.next(), begun, complete).catch((error: unknown) => {
    leave(budget, iterator);
    throw error;
  });
}

/** The same for a list whose items come one after the other. */
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
    // What is left of it is of no use, and its end is not waited for.
    void closeQuietly(iterator);
    throw error;
  }
  return pending ? Promise.all(results) : results;
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

/** Counts an item: at least one character, or its text; what is in an object has been counted. */
function count(budget: ResultBudget, completed: unknown): void {
  budget.values += 1;
  budget.bytes += typeof completed === 'string' ? completed.length + 1 : 1;
}

/** Only what took a turn of its own, and so is a promise, may hold a list that is text. */
function addTo(list: JsonList, batch: readonly unknown[]): MaybePromise<void> {
  if (!batch.some((completed) => completed instanceof Promise)) return list.add(batch);
  return Promise.all(batch).then((items) => list.addWithLists(items));
}

/** A promise that may fail before it is waited for. */
function guarded(completed: unknown): unknown {
  if (completed instanceof Promise) completed.catch(() => {});
  return completed;
}

/**
 * Leaves an iterator that failed. GraphQL.js reads it to its end for the promises in it, whose errors would be nobody's;
 * so do we, but no further than a result may get.
 */
function leave(budget: ResultBudget, iterator: Iterator<unknown>): void {
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
    // It has failed already.
  }
}

async function closeQuietly(iterator: AsyncIterator<unknown>): Promise<void> {
  try {
    await iterator.return?.();
  } catch {
    // It has failed already.
  }
}
