/** A value, or a promise of one where the engine behind it is asynchronous. */
export type MaybePromise<T> = T | Promise<T>;

/** Uses a value as soon as it is there: at once when it is no promise, so that the fast engine costs no turn. */
export function whenReady<T, R>(value: MaybePromise<T>, use: (value: T) => MaybePromise<R>): MaybePromise<R> {
  return value instanceof Promise ? value.then(use) : use(value);
}
