import type { GraphQLResolveInfo } from 'graphql';
import { isThenable } from '../../core/maybe-promise.ts';

type Helpers = ReturnType<GraphQLResolveInfo['getAsyncHelpers']>;

/** Handles the errors of promises that are in no result: else one of them would end the process. */
export function track(values: Iterable<unknown>): void {
  for (const value of values) if (isThenable(value)) value.then(ignore, ignore);
}

/** What resolvers use for promises that they leave behind. No hook waits for these. */
export const asyncHelpers: Helpers = Object.freeze<Helpers>({
  promiseAll(values) {
    const all = Promise.all(values);
    all.then(undefined, () => track(values));
    return all;
  },
  track,
});

/** `promise.then(use)`, with the same number of microtasks for a promise whose `then` returns something else. */
export function after<T, R>(promise: PromiseLike<T>, use: (value: T) => R | PromiseLike<R>): Promise<R> {
  if (promise instanceof Promise) return promise.then(use);
  return new Promise((resolve, reject) => {
    promise.then((value) => {
      try {
        resolve(use(value));
      } catch (error) {
        reject(error);
      }
    }, reject);
  });
}

function ignore(): void {}
