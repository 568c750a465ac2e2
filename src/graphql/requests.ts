import {
  type Batch,
  type ClientSignal,
  type FindOperation,
  maskErrors,
  type Operation,
  paramsFromBody,
  paramsOf,
  type Refused,
  type RequestParams,
  resultText,
  SharedClientSignal,
} from '@portico/graphql-plans';
import {
  type ErrorFormat,
  EventStream,
  eventReply,
  HttpProblem,
  type KnownCaller,
  NO_PIECES,
  type Reply,
  type RequestContext,
} from '@portico/transport';
import { type ExecutionResult, GraphQLError } from 'graphql';
import { refuseFromOtherSite } from '../access/cors.ts';
import { type Guards, whileValid } from '../access/guarded.ts';
import type { AccessPolicy } from '../access/policy.ts';
import { type RowAccess, requireAny } from '../access/row-access.ts';
import type { ErrorCode } from '../core/error-codes.ts';
import { isRecord } from '../core/json.ts';
import { parseAccept, takesEventStream } from '../core/negotiation.ts';
import { type MaybePromise, whenReady } from '../core/scheduler.ts';
import { requestFields } from '../core/trace.ts';
import { type Operation as RowOperation, USERS } from '../relations/relation.ts';
import type { ContextDetails } from './config.ts';

/** Details of an operation in addition to its request. */
interface CallDetails {
  /** The client that waits for the result; default the request, unless several operations share it. */
  readonly recipient?: ClientSignal;
  /** The payload of a WebSocket's `connection_init`. */
  readonly connectionParams?: Readonly<Record<string, unknown>> | undefined;
}

/** Options for running requests. */
export interface RunOptions extends Guards, RowAccess {
  readonly findOperation: FindOperation;
  /** Returns the context for resolvers. */
  contextOf(ctx: RequestContext, call?: CallDetails): unknown;
  /** Maximum operations of a batch; 0 refuses batches. */
  readonly maxBatch: number;
}

/**
 * Runs the operation of a request. A client that accepts an event stream gets one (GraphQL over SSE, distinct
 * connections mode) for subscriptions, and for any operation if it accepts nothing else. Throws HttpProblem.
 */
export function runRequest(ctx: RequestContext, options: RunOptions): MaybePromise<Reply> {
  const { accept } = ctx.headers;
  const type = negotiateResultType(accept);
  const streams = acceptsEvents(accept);
  if (type === undefined && !streams) throw notAcceptable();
  const params = paramsOf(ctx);
  if (Array.isArray(params)) {
    if (type === undefined) throw notAcceptable();
    return runAll(ctx, params, type, options);
  }
  const operation = findOperation(ctx, options, params);
  if (streams && (type === undefined || subscribes(operation))) {
    return streamResults(ctx, operation, params, options);
  }
  if (type === undefined) throw notAcceptable();
  if ('errors' in operation) return refuseOperation(ctx, operation, type);
  refuseSubscription(operation);
  refuseWriteByGet(ctx, operation);
  authorize(options, ctx, operation);
  return whenReady(operation.run(params.variables, options.contextOf(ctx), ctx, ctx), (result) =>
    replyWith(masked(ctx, result, options.policy), type),
  );
}

/**
 * Runs a batch. Each operation's outcome is in its own result, so the reply has a single status (GraphQL over
 * HTTP, "Request Batching").
 */
function runAll(
  ctx: RequestContext,
  batch: Batch,
  type: ResultType,
  options: RunOptions,
): MaybePromise<Reply> {
  const { contextOf, maxBatch, policy } = options;
  let operations = 0;
  const recipient = new SharedClientSignal(ctx);
  const run = (params: RequestParams) => {
    // The request itself was counted as the first operation.
    if (operations++ > 0) policy?.countOperation(ctx);
    const operation = findOperation(ctx, options, params);
    if ('errors' in operation) return resultText({ errors: operation.errors });
    refuseSubscription(operation);
    authorize(options, ctx, operation);
    const context = contextOf(ctx, { recipient });
    return whenReady(operation.run(params.variables, context, recipient, ctx), (result) =>
      resultText(masked(ctx, result, policy)),
    );
  };
  const texts = runBatch(batch, maxBatch, run, (refusal) => policy?.noteRefusal(ctx, refusal));
  return whenReady(texts, (body) => ({ status: 200, type: `${type}; charset=utf-8`, body }));
}

/** Finds the operation of a request. What is wrong with a document is for callers that may send some. Throws HttpProblem. */
function findOperation(ctx: RequestContext, options: RunOptions, params: RequestParams) {
  const operation = options.findOperation(params);
  if ('errors' in operation) options.policy?.requireCaller(ctx);
  return operation;
}

function refuseSubscription({ definition }: Operation): void {
  if (definition.operation !== 'subscription') return;
  throw new HttpProblem(406, 'NEEDS_EVENT_STREAM', `A subscription needs "Accept: ${EVENT_STREAM}"`);
}

/** Refuses mutations by GET, which may be repeated, cached and prefetched (GraphQL over HTTP, "GET"). */
function refuseWriteByGet({ method }: Pick<RequestContext, 'method'>, operation: Operation): void {
  if (method === 'POST' || operation.definition.operation !== 'mutation') return;
  throw new HttpProblem(405, 'MUTATION_BY_GET', 'A mutation needs POST', { headers: { allow: 'POST' } });
}

const NOT_ALLOWED = new HttpProblem(403, 'NOT_ALLOWED', 'A rule of a relation refuses a field');

/** Masks errors that the program threw, and logs them. Reports that rules have refused something, which no status shows. */
export function masked(
  ctx: RequestContext,
  result: ExecutionResult,
  policy: AccessPolicy | undefined,
): ExecutionResult {
  if (result.errors?.some(({ extensions }) => extensions.code === NOT_ALLOWED.code) === true)
    policy?.noteRefusal(ctx, NOT_ALLOWED);
  return maskErrors(result, (error) =>
    ctx.log.error({ ...requestFields(ctx), err: error }, 'resolver failed'),
  );
}

function notAcceptable(): HttpProblem {
  const types = Object.values(RESULT_TYPES).join(' or ');
  return new HttpProblem(406, 'NOT_ACCEPTABLE', `This endpoint answers with ${types}`);
}

/** The reply to a refused document; its result contains the reasons. */
function refuseOperation(ctx: RequestContext, refused: Refused, type: ResultType): Reply {
  const reply = replyWith({ errors: refused.errors }, type);
  const [first] = refused.errors;
  const code = String(first?.extensions.code ?? ('INVALID_DOCUMENT' satisfies ErrorCode));
  const { method, log } = ctx;
  const { status } = reply;
  log.debug({ ...requestFields(ctx), method, status, code, reason: first?.message }, 'request refused');
  return { ...reply, headers: { ...refused.headers, 'x-error-code': code } };
}

function replyWith(result: ExecutionResult, type: ResultType): Reply {
  // A request that did not run is a 400, but older clients read errors only from a 200.
  const status = 'data' in result || type === RESULT_TYPES.legacy ? 200 : 400;
  return { status, type: `${type}; charset=utf-8`, body: resultText(result) };
}

/** The JSON of one result. */
type ResultText = string | Buffer;

/**
 * Runs the operations of a batch in parallel and returns a list of their results in the same order. A refused
 * operation becomes an error result and is passed to `onRefused`. Throws HttpProblem if the whole batch is
 * refused; then nothing runs.
 */
function runBatch(
  batch: Batch,
  maxBatch: number,
  run: (params: RequestParams) => MaybePromise<ResultText>,
  onRefused?: (refusal: HttpProblem) => void,
): MaybePromise<ResultText> {
  refuseLarge(batch.length, maxBatch);
  if (!batch.every((entry) => typeof entry === 'object' && entry !== null && !Array.isArray(entry))) {
    throw new HttpProblem(400, 'MALFORMED_REQUEST', 'Each operation of a batch must be a JSON object');
  }
  const texts = batch.map((entry) => {
    try {
      return run(paramsFromBody(entry));
    } catch (error) {
      if (!(error instanceof HttpProblem)) throw error;
      onRefused?.(error);
      return graphqlErrors.body(error, undefined);
    }
  });
  return texts.some((text) => text instanceof Promise)
    ? Promise.all(texts).then(listOf)
    : listOf(texts as readonly ResultText[]);
}

function refuseLarge(length: number, maxBatch: number): void {
  if (maxBatch === 0) {
    throw new HttpProblem(400, 'BATCH_REFUSED', 'Batching is off; send one operation per request (maxBatch)');
  }
  if (length === 0) throw new HttpProblem(400, 'MALFORMED_REQUEST', 'The batch is empty');
  if (length > maxBatch) {
    const message = `The batch has ${length} operations; at most ${maxBatch} are allowed (maxBatch)`;
    throw new HttpProblem(400, 'BATCH_REFUSED', message);
  }
}

function listOf(texts: readonly ResultText[]): ResultText {
  if (texts.every((text) => typeof text === 'string')) return `[${texts.join()}]`;
  const parts = texts.flatMap((text, index) => [Buffer.from(index === 0 ? '[' : ','), Buffer.from(text)]);
  return Buffer.concat([...parts, Buffer.from(']')]);
}

/**
 * Details of a request for its context. The abort signal is created on first use, because most contexts do
 * not need it.
 */
export class RequestLifetime implements ContextDetails {
  readonly connectionParams: ContextDetails['connectionParams'];
  readonly caller: ContextDetails['caller'];
  readonly #recipient: ClientSignal;
  #controller: AbortController | undefined;

  constructor(
    recipient: ClientSignal,
    connectionParams: ContextDetails['connectionParams'],
    caller: ContextDetails['caller'],
  ) {
    this.connectionParams = connectionParams;
    this.caller = caller;
    this.#recipient = recipient;
  }

  get abortSignal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController();
      this.#controller = controller;
      this.#recipient.onAbort(() => controller.abort());
    }
    return this.#controller.signal;
  }
}

/** The two media types of a GraphQL result (GraphQL over HTTP, "Media Types"). */
export const RESULT_TYPES = {
  legacy: 'application/json',
  modern: 'application/graphql-response+json',
} as const;

/** The media type of subscriptions. */
const EVENT_STREAM = 'text/event-stream';

/** One of the two result types. */
type ResultType = (typeof RESULT_TYPES)[keyof typeof RESULT_TYPES];

/**
 * Selects the media type of the result from an Accept header; undefined if neither is acceptable (406). The
 * modern type must be named, because wildcards also come from clients that predate it.
 */
export function negotiateResultType(accept: string | undefined): ResultType | undefined {
  if (accept === undefined || accept === '*/*') return RESULT_TYPES.legacy;
  const wanted = parseAccept(accept);
  const modern = wanted(RESULT_TYPES.modern);
  const legacy = wanted(RESULT_TYPES.legacy).weight;
  const named = modern.specificity === 2;
  if (modern.weight > legacy || (modern.weight > 0 && modern.weight === legacy && named)) {
    return RESULT_TYPES.modern;
  }
  return legacy > 0 ? RESULT_TYPES.legacy : undefined;
}

/**
 * Checks whether the caller may run an operation: mutations require write access, all others read access. A
 * mutation whose result can show data stored before requires both. Fields of relations require the access to these, by
 * rules where a relation has some. Throws HttpProblem.
 */
export function authorize(access: RowAccess, ctx: RequestContext, operation: Operation): void {
  const { policy, rules } = access;
  if (policy === undefined && rules === undefined) return;
  for (const { need, relation, operations } of operation.needs) {
    if (relation !== undefined && rules?.governs(relation) === true) {
      requireAny(access, ctx, relation, operations as readonly RowOperation[]);
    } else policy?.authorizeOperation(ctx, need, relation === USERS ? undefined : relation);
  }
}

/**
 * Creates a request's context from the shared one, with the `caller` if there is an access policy, and with what `own`
 * makes for each caller.
 */
export function contextWithCaller(
  shared: unknown,
  policy: AccessPolicy | undefined,
  own: ((caller: KnownCaller | undefined) => object) | undefined,
): (ctx: RequestContext) => unknown {
  if (shared !== undefined && !isRecord(shared)) return () => shared;
  if (policy !== undefined) return ({ caller }) => ({ ...shared, ...own?.(caller), caller });
  if (own === undefined) return () => shared;
  return ({ caller }) => ({ ...shared, ...own(caller) });
}

/**
 * The results of a subscription until its caller's credentials expire or are revoked; it then ends with an
 * error.
 */
export function resultsWhileValid(
  source: AsyncIterable<ExecutionResult>,
  policy: AccessPolicy | undefined,
  ctx: RequestContext,
): AsyncIterable<ExecutionResult> {
  return whileValid(source, policy, ctx, { errors: [ENDED] });
}

const ENDED = new GraphQLError('The credentials are no longer valid', {
  extensions: { code: 'UNAUTHORIZED' satisfies ErrorCode },
});

/** Whether a client names the media type of event streams. */
export function acceptsEvents(accept: string | undefined): boolean {
  return takesEventStream(accept) && parseAccept(accept)(EVENT_STREAM).weight > 0;
}

function subscribes(operation: Operation | Refused): boolean {
  return !('errors' in operation) && operation.definition.operation === 'subscription';
}

/** Answers with the results of an operation as events. Throws HttpProblem. */
function streamResults(
  ctx: RequestContext,
  operation: Operation | Refused,
  { variables }: RequestParams,
  options: RunOptions,
): MaybePromise<Reply> {
  const { policy, cors, contextOf } = options;
  refuseFromOtherSite('Event streams', ctx, cors);
  if ('errors' in operation) return eventsReply(ctx, { errors: operation.errors }, policy);
  refuseWriteByGet(ctx, operation);
  authorize(options, ctx, operation);
  // An event stream does not end, so HEAD is answered immediately.
  if (ctx.method === 'HEAD') return eventReply(NO_PIECES);
  const context = contextOf(ctx);
  if (!subscribes(operation)) {
    return whenReady(operation.run(variables, context, ctx, ctx), (result) =>
      eventsReply(ctx, result, policy),
    );
  }
  return whenReady(operation.subscribe(variables, context, ctx, ctx), (source) =>
    eventsReply(ctx, isStream(source) ? resultsWhileValid(source, policy, ctx) : source, policy),
  );
}

const COMPLETE = 'event: complete\ndata: \n\n';

/**
 * The reply with results as events. It does not capture the request's variables, which would stay in memory
 * as long as the stream lasts.
 */
function eventsReply(
  ctx: RequestContext,
  opened: AsyncIterable<ExecutionResult> | ExecutionResult,
  policy: AccessPolicy | undefined,
): Reply {
  const text = (result: ExecutionResult) =>
    `event: next\ndata: ${resultText(masked(ctx, result, policy))}\n\n`;
  // A single result is sent like any other reply, and refused if it does not fit into the budget.
  return eventReply(
    isStream(opened) ? new EventStream(opened, { text, end: () => COMPLETE }) : text(opened) + COMPLETE,
  );
}

function isStream(
  opened: AsyncIterable<ExecutionResult> | ExecutionResult,
): opened is AsyncIterable<ExecutionResult> {
  return Symbol.asyncIterator in opened;
}

/** Formats a refusal outside of any operation as a GraphQL result with errors. */
export const graphqlErrors: ErrorFormat = {
  contentType: 'application/json; charset=utf-8',
  body: (problem) =>
    JSON.stringify({ errors: [{ message: problem.message, extensions: { code: problem.code } }] }),
};
