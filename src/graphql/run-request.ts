import type { ExecutionResult } from 'graphql';
import { type MaybePromise, whenReady } from '../core/maybe-promise.ts';
import type { Exchange, Reply } from '../http/endpoint.ts';
import { HttpProblem } from '../http/problem.ts';
import { type FindOperation, isQuery } from './executor.ts';
import { maskErrors } from './mask-errors.ts';
import { needsEventStream, negotiateResultType, RESULT_TYPES, type ResultType } from './media-type.ts';
import type { Operation } from './operation.ts';
import type { RequestParams } from './request-params.ts';
import { resultBody, resultStatus, resultTypeHeader } from './result.ts';

/** What requests are run with. */
export interface RunOptions {
  readonly findOperation: FindOperation;
  /** The parameters of a request. Throws HttpProblem. */
  paramsOf(exchange: Exchange): RequestParams;
  /** What resolvers get as their context. */
  contextOf(exchange: Exchange): unknown;
}

/** Runs the operation of a request and answers with its one result. Throws HttpProblem. */
export function runRequest(exchange: Exchange, options: RunOptions): MaybePromise<Reply> {
  const type = negotiateResultType(exchange.headers.accept);
  if (type === undefined) throw notAcceptable();
  const params = options.paramsOf(exchange);
  const operation = options.findOperation(params);
  if ('errors' in operation) return replyWith(operation, type);
  if (operation.definition.operation === 'subscription') throw needsEventStream();
  refuseWriteByGet(exchange, operation);
  return whenReady(operation.run(params.variables, options.contextOf(exchange)), (result) =>
    replyWith(masked(exchange, result), type),
  );
}

/** A GET may be repeated, cached and prefetched, so it runs queries only (GraphQL over HTTP, "GET"). */
export function refuseWriteByGet({ method }: Pick<Exchange, 'method'>, operation: Operation): void {
  if (method === 'POST' || isQuery(operation) || operation.definition.operation === 'subscription') return;
  throw new HttpProblem(405, 'MUTATION_BY_GET', 'A mutation needs POST', { headers: { allow: 'POST' } });
}

/** Hides what the program threw, and logs it. */
export function masked({ id, log }: Exchange, result: ExecutionResult): ExecutionResult {
  return maskErrors(result, (error) => log.error({ reqId: id, err: error }, 'resolver failed'));
}

function notAcceptable(): HttpProblem {
  const types = Object.values(RESULT_TYPES).join(' or ');
  return new HttpProblem(406, 'NOT_ACCEPTABLE', `This endpoint answers with ${types}`);
}

function replyWith(result: ExecutionResult, type: ResultType): Reply {
  return { status: resultStatus(result, type), type: resultTypeHeader(type), body: resultBody(result) };
}
