/** A value, or a promise of one if the engine is asynchronous. */
export type MaybePromise<T> = T | Promise<T>;

/** Calls `use` with the value, at once if it is no promise, so that a synchronous engine costs no tick. */
export function whenReady<T, R>(value: MaybePromise<T>, use: (value: T) => MaybePromise<R>): MaybePromise<R> {
  return value instanceof Promise ? value.then(use) : use(value);
}

/** Whether a value is a promise, of any class. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as { readonly then?: unknown } | null | undefined)?.then === 'function';
}
