import { maskOf, type Operation } from '@portico/graphql-plans';
import { requestFields, toProblem } from '@portico/transport';
import { type ExecutionArgs, type ExecutionResult, GraphQLError, type GraphQLSchema, Kind } from 'graphql';
import { type Context, makeServer, type Server, type SubscribePayload } from 'graphql-ws';
import type { ErrorCode } from '../core/error-codes.ts';
import { type MaybePromise, whenReady } from '../core/maybe-promise.ts';
import { SlowSubscriberError } from '../relations/events.ts';
import { admitSocket } from './admit-socket.ts';
import { type GraphqlSocket, SubscriptionStream } from './graphql-socket.ts';
import { refusal } from './operation-slots.ts';
import { authorize, masked, type RunOptions, resultsWhileValid } from './requests.ts';

/** How long a client may take to send `connection_init`, in milliseconds. */
const INIT_TIMEOUT = 3_000;

type SocketContext = Context<Record<string, unknown> | undefined, GraphqlSocket>;

/** What graphql-ws hands from `onSubscribe` to the run. */
interface RunArgs extends ExecutionArgs {
  readonly operation: Operation;
  run(): MaybePromise<ExecutionResult | SubscriptionStream>;
}

/** The protocol of graphql-ws over the door's own operations. */
export function createProtocol(schema: GraphQLSchema, options: RunOptions): Server<GraphqlSocket> {
  const run = (args: ExecutionArgs) => (args as RunArgs).run();
  return makeServer<Record<string, unknown> | undefined, GraphqlSocket>({
    connectionInitWaitTimeout: INIT_TIMEOUT,
    onConnect: ({ extra, connectionParams }) =>
      options.gate === undefined || admitSocket(options.gate, extra, connectionParams),
    onSubscribe: (context, _id, payload) => begin(context, payload),
    execute: run,
    subscribe: run,
    onNext: ({ extra: socket }, id, _payload, args, result) => {
      const isEvent = (args as RunArgs).operation.definition.operation === 'subscription';
      return socket.payload(id, masked(socket.exchange, result as ExecutionResult), isEvent) as object;
    },
    onError: ({ extra: socket }, _id, _payload, errors) =>
      errors.map((error) => shown(socket, error).toJSON()),
    onComplete: ({ extra: socket }, _id, payload) => socket.finish(payload),
  });

  function begin(
    { extra: socket, connectionParams }: SocketContext,
    payload: SubscribePayload,
  ): RunArgs | readonly GraphQLError[] {
    const { query, operationName } = payload;
    const operation = options.findOperation({
      query,
      operationName: operationName ?? undefined,
      variables: payload.variables ?? undefined,
    });
    if ('errors' in operation) return operation.errors;
    const forbidden = forbiddenBy(options, socket, operation);
    if (forbidden !== undefined) return [forbidden];
    const refused = socket.begin(payload);
    if (refused !== undefined) return [refused];
    // Held as long as the operation runs. Parsed, variables may take twenty times their text.
    Object.assign(payload, { query: '', extensions: undefined });
    const { definition } = operation;
    return {
      schema,
      document: { kind: Kind.DOCUMENT, definitions: [definition] },
      operationName: definition.name?.value ?? null,
      contextValue: undefined,
      rootValue: undefined,
      operation,
      run() {
        try {
          const recipient = socket.recipientOf(payload);
          const context = options.contextOf(socket.exchange, { recipient, connectionParams });
          const inputs = payload.variables ?? undefined;
          Object.assign(payload, { variables: undefined });
          if (definition.operation !== 'subscription') return operation.run(inputs, context, recipient);
          return whenReady(operation.subscribe(inputs, context, recipient), (source) =>
            Symbol.asyncIterator in source
              ? open(socket, resultsWhileValid(source, options.gate, socket.exchange))
              : source,
          );
        } catch (error) {
          return failed(socket, error);
        }
      },
    };
  }
}

/** Why the caller may not run an operation. */
function forbiddenBy(
  options: RunOptions,
  { exchange }: GraphqlSocket,
  operation: Operation,
): GraphQLError | undefined {
  try {
    options.gate?.countOperation(exchange);
    authorize(options.gate, exchange, operation);
    return undefined;
  } catch (error) {
    options.gate?.noteRefusal(exchange, error);
    const { code, message } = toProblem(error);
    return new GraphQLError(message, { extensions: { code } });
  }
}

function open(socket: GraphqlSocket, source: AsyncIterable<ExecutionResult>): SubscriptionStream {
  const stream = new SubscriptionStream(source, () => socket.forget(stream));
  socket.watch(stream);
  return stream;
}

/** What the making of a context threw: a refusal of the user's own is shown. */
function failed({ exchange }: GraphqlSocket, error: unknown): ExecutionResult {
  if (error instanceof GraphQLError) return { errors: [error] };
  const { status, code, message } = toProblem(error);
  if (status >= 500) exchange.log.error({ ...requestFields(exchange), err: error }, 'operation failed');
  return { errors: [new GraphQLError(message, { extensions: { code } })] };
}

/** The error of a document as it is; of a source that failed only what clients may know. */
function shown({ exchange }: GraphqlSocket, error: GraphQLError): GraphQLError {
  const { cause } = error;
  if (cause === undefined || error.extensions.code !== undefined) return error;
  if (cause instanceof GraphQLError) return cause;
  if (cause instanceof SlowSubscriberError) return refusal(cause.code as ErrorCode, cause.message);
  exchange.log.warn({ ...requestFields(exchange), err: cause }, 'subscription failed');
  const [message, code] = maskOf(cause);
  return refusal(code, message);
}
