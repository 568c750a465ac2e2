import { type ExecutionResult, GraphQLError } from 'graphql';
import type { ErrorCode } from '../core/error-codes.ts';
import { isRecord } from '../core/record.ts';
import type { ApiGate } from '../http/access/api-gate.ts';
import { whileValid } from '../http/access/while-valid.ts';
import type { Exchange } from '../http/endpoint.ts';
import type { Operation } from './operation.ts';

/**
 * Judges whether the caller may run an operation: mutations write, all others read. A mutation whose result can show
 * what was stored before reads as well. Throws HttpProblem.
 */
export function authorize(gate: ApiGate | undefined, exchange: Exchange, operation: Operation): void {
  if (gate === undefined) return;
  const writes = operation.definition.operation === 'mutation';
  if (writes) gate.authorize(exchange, 'write');
  if (!writes || operation.showsStored) gate.authorize(exchange, 'read');
}

/** Makes the context of a request from the one that all share: behind a gate it has the `caller`. */
export function contextWithCaller(
  shared: unknown,
  gate: ApiGate | undefined,
): (exchange: Exchange) => unknown {
  if (gate === undefined || (shared !== undefined && !isRecord(shared))) return () => shared;
  return ({ caller }) => ({ ...shared, caller });
}

/** The results of a subscription until the credentials of its caller expire or are revoked; then an error ends it. */
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
