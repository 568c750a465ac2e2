import { type ExecutionResult, GraphQLError } from 'graphql';
import type { ErrorCode } from '../../core/error-codes.ts';
import type { ApiGate } from '../../http/access/api-gate.ts';
import { whileValid } from '../../http/access/while-valid.ts';
import type { Exchange } from '../../http/endpoint.ts';

/** The results of a subscription until the credentials of its caller are not good any more; then an error ends it. */
export function resultsWhileValid(
  source: AsyncIterable<ExecutionResult>,
  gate: ApiGate | undefined,
  exchange: Exchange,
): AsyncIterable<ExecutionResult> {
  return whileValid(source, gate, exchange, { errors: [ENDED] });
}

const ENDED = new GraphQLError('The credentials are not valid any more', {
  extensions: { code: 'UNAUTHORIZED' satisfies ErrorCode },
});
