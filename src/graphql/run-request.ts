import type { ExecutionResult } from 'graphql';
import type { ErrorCode } from '../core/error-codes.ts';
import { type MaybePromise, whenReady } from '../core/maybe-promise.ts';
import type { Guards } from '../http/access/guarded.ts';
import type { Exchange, Reply } from '../http/endpoint.ts';
import { HttpProblem } from '../http/problem.ts';
import { requestFields } from '../observability/trace/request-fields.ts';
import { authorize } from './access.ts';
import { type Recipient, SharedRecipient } from './execution/recipient.ts';
import { resultText } from './execution/result-text.ts';
import type { FindOperation, Refused } from './executor.ts';
import { maskErrors } from './mask-errors.ts';
import { EVENT_STREAM, negotiateResultType, RESULT_TYPES, type ResultType } from './media-type.ts';
import type { Operation } from './operation.ts';
import { type Batch, paramsOf, type RequestParams } from './request-params.ts';
import { runBatch } from './run-batch.ts';

/** What an operation is called with, beside its exchange. */
export interface CallDetails {
  /** Who waits for the result; the exchange unless several operations share it. */
  readonly recipient?: Recipient;
  /** The payload of a WebSocket's `connection_init`. */
  readonly connectionParams?: Readonly<Record<string, unknown>> | undefined;
}

/** What requests are run with. */
export interface RunOptions extends Guards {
  readonly findOperation: FindOperation;
  /** What resolvers get as their context. */
  contextOf(exchange: Exchange, call?: CallDetails): unknown;
  /** Maximum operations of a batch; 0 refuses batches. */
  readonly maxBatch: number;
}

/** Runs the operation of a request and answers with its one result. Throws HttpProblem. */
export function runRequest(exchange: Exchange, options: RunOptions): MaybePromise<Reply> {
  const type = negotiateResultType(exchange.headers.accept);
  if (type === undefined) throw notAcceptable();
  const params = paramsOf(exchange);
  if (Array.isArray(params)) return runAll(exchange, params, type, options);
  const operation = options.findOperation(params);
  if ('errors' in operation) return refuseOperation(exchange, operation, type);
  refuseSubscription(operation);
  refuseWriteByGet(exchange, operation);
  authorize(options.gate, exchange, operation);
  return whenReady(operation.run(params.variables, options.contextOf(exchange), exchange), (result) =>
    replyWith(masked(exchange, result), type),
  );
}

/** What comes of each operation is in its own result, so the reply has one status (GraphQL over HTTP, "Request Batching"). */
function runAll(
  exchange: Exchange,
  batch: Batch,
  type: ResultType,
  options: RunOptions,
): MaybePromise<Reply> {
  const { findOperation, contextOf, maxBatch, gate } = options;
  let operations = 0;
  const recipient = new SharedRecipient(exchange);
  const run = (params: RequestParams) => {
    // The first was counted with its request.
    if (operations++ > 0) gate?.countOperation(exchange);
    const operation = findOperation(params);
    if ('errors' in operation) return resultText({ errors: operation.errors });
    refuseSubscription(operation);
    authorize(gate, exchange, operation);
    const context = contextOf(exchange, { recipient });
    return whenReady(operation.run(params.variables, context, recipient), (result) =>
      resultText(masked(exchange, result)),
    );
  };
  const texts = runBatch(batch, maxBatch, run, (refusal) => gate?.noteRefusal(exchange, refusal));
  return whenReady(texts, (body) => ({ status: 200, type: `${type}; charset=utf-8`, body }));
}

function refuseSubscription({ definition }: Operation): void {
  if (definition.operation !== 'subscription') return;
  throw new HttpProblem(406, 'NEEDS_EVENT_STREAM', `A subscription needs "Accept: ${EVENT_STREAM}"`);
}

/** A GET may be repeated, cached and prefetched, so it runs queries only (GraphQL over HTTP, "GET"). */
export function refuseWriteByGet({ method }: Pick<Exchange, 'method'>, operation: Operation): void {
  if (method === 'POST' || operation.definition.operation !== 'mutation') return;
  throw new HttpProblem(405, 'MUTATION_BY_GET', 'A mutation needs POST', { headers: { allow: 'POST' } });
}

/** Hides what the program threw, and logs it. */
export function masked(exchange: Exchange, result: ExecutionResult): ExecutionResult {
  return maskErrors(result, (error) =>
    exchange.log.error({ ...requestFields(exchange), err: error }, 'resolver failed'),
  );
}

function notAcceptable(): HttpProblem {
  const types = Object.values(RESULT_TYPES).join(' or ');
  return new HttpProblem(406, 'NOT_ACCEPTABLE', `This endpoint answers with ${types}`);
}

/** A refused document has its reasons in the result. */
function refuseOperation(exchange: Exchange, refused: Refused, type: ResultType): Reply {
  const reply = replyWith({ errors: refused.errors }, type);
  const [first] = refused.errors;
  const code = String(first?.extensions.code ?? ('INVALID_DOCUMENT' satisfies ErrorCode));
  const { method, log } = exchange;
  const { status } = reply;
  log.debug({ ...requestFields(exchange), method, status, code, reason: first?.message }, 'request refused');
  return { ...reply, headers: { ...refused.headers, 'x-error-code': code } };
}

function replyWith(result: ExecutionResult, type: ResultType): Reply {
  // A request that did not run is a 400, but older clients read errors only from a 200.
  const status = 'data' in result || type === RESULT_TYPES.legacy ? 200 : 400;
  return { status, type: `${type}; charset=utf-8`, body: resultText(result) };
}
