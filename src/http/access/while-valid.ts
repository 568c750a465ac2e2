import type { Exchange } from '../endpoint.ts';
import type { ApiGate } from './api-gate.ts';

/**
 * The values of a source until the credentials of its caller expire or are revoked; then `last`, or nothing, in the place
 * of the next one ends it. Returning it returns the source at once.
 */
export function whileValid<T>(
  source: AsyncIterable<T>,
  gate: ApiGate | undefined,
  exchange: Pick<Exchange, 'caller'>,
  ...last: readonly [T] | readonly []
): AsyncIterable<T> {
  if (gate === undefined || exchange.caller === undefined) return source;
  const iterator = source[Symbol.asyncIterator]();
  let isOver = false;
  const end = async () => {
    isOver = true;
    await iterator.return?.();
    return { done: true, value: undefined } as const;
  };
  const values: AsyncIterableIterator<T> = {
    [Symbol.asyncIterator]: () => values,
    async next() {
      if (isOver) return { done: true, value: undefined };
      const step = await iterator.next();
      if (step.done === true || gate.mayGoOn(exchange)) return step;
      const ended = await end();
      return last.length === 0 ? ended : { done: false, value: last[0] };
    },
    return: end,
  };
  return values;
}
