import type { ExecutionResult } from 'graphql';

type Next = IteratorResult<ExecutionResult, undefined>;

const DONE: Next = { value: undefined, done: true };

/** The results of a subscription until their source, the client or a stop ends them. */
export class SubscriptionStream implements AsyncIterableIterator<ExecutionResult, undefined> {
  readonly #source: AsyncIterator<ExecutionResult>;
  #waiting: PromiseWithResolvers<Next> | undefined;
  readonly #onEnd: () => void;
  #hasEnded = false;

  /** `onEnd` is called once. */
  constructor(source: AsyncIterable<ExecutionResult>, onEnd: () => void) {
    this.#source = source[Symbol.asyncIterator]();
    this.#onEnd = onEnd;
  }

  next(): Promise<Next> {
    if (this.#hasEnded) return Promise.resolve(DONE);
    const waiting = Promise.withResolvers<Next>();
    this.#waiting = waiting;
    this.#source.next().then(
      (next) => {
        if (next.done === true) this.end();
        else waiting.resolve(next);
      },
      (error: unknown) => {
        waiting.reject(error);
        this.end();
      },
    );
    return waiting.promise;
  }

  return(): Promise<Next> {
    this.end();
    return Promise.resolve(DONE);
  }

  /** Does not wait for the source: that may be in the middle of something that takes forever. */
  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#onEnd();
    this.#waiting?.resolve(DONE);
    Promise.resolve(this.#source.return?.()).catch(() => {});
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
