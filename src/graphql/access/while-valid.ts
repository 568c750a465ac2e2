import { type ExecutionResult, GraphQLError } from 'graphql';
import type { ErrorCode } from '../../core/error-codes.ts';
import type { ApiGate } from '../../http/access/api-gate.ts';
import type { Exchange } from '../../http/endpoint.ts';

/**
 * The results of a subscription until the credentials of its caller expire or are revoked; then an error in the place of
 * the next one ends it. Returning it returns the source at once.
 */
export function whileValid(
  source: AsyncIterable<ExecutionResult>,
  gate: ApiGate | undefined,
  exchange: Exchange,
): AsyncIterable<ExecutionResult> {
  if (gate === undefined || exchange.caller === undefined) return source;
  const iterator = source[Symbol.asyncIterator]();
  let isOver = false;
  const end = async () => {
    isOver = true;
    await iterator.return?.();
    return { done: true, value: undefined } as const;
  };
  const results: AsyncIterableIterator<ExecutionResult> = {
    [Symbol.asyncIterator]: () => results,
    async next() {
      if (isOver) return { done: true, value: undefined };
      const step = await iterator.next();
      if (step.done === true || gate.mayGoOn(exchange)) return step;
      await end();
      return { done: false, value: { errors: [ENDED] } };
    },
    return: end,
  };
  return results;
}

const ENDED = new GraphQLError('The credentials are not valid any more', {
  extensions: { code: 'UNAUTHORIZED' satisfies ErrorCode },
});
