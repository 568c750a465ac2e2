import { maskOf, type Operation } from '@portico/graphql-plans';
import {
  BodyBudget,
  HttpProblem,
  offeredUpgrade,
  ProtocolSwitch,
  type Reply,
  type ReplyBudget,
  type RequestContext,
  takeUpgrades,
  toProblem,
} from '@portico/transport';
import type { FastifyInstance } from 'fastify';
import { type ExecutionArgs, type ExecutionResult, GraphQLError, type GraphQLSchema, Kind } from 'graphql';
import {
  type Context,
  GRAPHQL_TRANSPORT_WS_PROTOCOL,
  makeServer,
  type Server,
  type SubscribePayload,
} from 'graphql-ws';
import { type WebSocket, WebSocketServer } from 'ws';
import type { ErrorCode } from '../core/error-codes.ts';
import { type MaybePromise, whenReady } from '../core/scheduler.ts';
import { requestFields } from '../core/trace.ts';
import { SlowSubscriberError } from '../relations/events.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { authorizeSocket, Heartbeat, judgeHandshake } from './authorize-socket.ts';
import { GraphqlSocket, SubscriptionStream } from './graphql-socket.ts';
import { OperationSlots, refusal, type WebSocketLimits } from './operation-slots.ts';
import { authorize, masked, type RunOptions, resultsWhileValid } from './requests.ts';
import { OutboundQueue } from './socket-queues.ts';

/** The WebSockets of an endpoint. */
interface OpenWebSockets {
  /**
   * The reply that turns a request's connection into a WebSocket; undefined if the request is not an upgrade.
   * Throws HttpProblem.
   */
  accept(ctx: RequestContext): Reply | undefined;
  /** Completes the running operations and closes all WebSockets. */
  end(): void;
}

/** Accepts WebSockets at `path` until the application closes; undefined if WebSockets are disabled. */
export function openWebSockets(
  app: FastifyInstance,
  options: WebSocketsOptions & { readonly path: string; readonly metrics: Metrics | undefined },
  run: RunOptions,
  replies: ReplyBudget,
): OpenWebSockets | undefined {
  if (options.maxWebSockets === 0) return undefined;
  const sockets = new WebSockets(options, run, { replies, bodies: BodyBudget.of(app) });
  const uri = app.prefix + options.path;
  const route = uri.split('/');
  const stop = takeUpgrades(app.server, (path) => matches(route, path.split('/')));
  if (options.metrics !== undefined) meter(options.metrics, uri, sockets);
  app.addHook('onClose', (_app, done) => {
    stop();
    done();
  });
  return {
    accept(ctx) {
      const upgrade = offeredUpgrade(ctx.request.raw);
      return upgrade && sockets.accept(upgrade, ctx);
    },
    end: () => sockets.end(),
  };
}

function meter(metrics: Metrics, uri: string, sockets: WebSockets): void {
  const gauge = (name: string, description: string, read: () => number) =>
    metrics.gauge(name, { description, tags: { uri } }, read);
  gauge('graphql.websockets', 'Open WebSockets, by route', () => sockets.open);
  gauge(
    'graphql.websocket.operations',
    'Operations in progress over WebSockets, by route',
    () => sockets.operations,
  );
}

/** Whether a path matches a route, whose prefix may have parameters. */
function matches(route: readonly string[], path: readonly string[]): boolean {
  return (
    route.length === path.length && route.every((each, index) => each === path[index] || each.startsWith(':'))
  );
}

/** How long a client may take to acknowledge a close, in milliseconds. */
const CLOSE_TIMEOUT = 2_000;

/** Maximum fragments of a message: a few, plus one per kilobyte of the maximum size. */
const MAX_FRAGMENTS = 16;
const FRAGMENT = 1_024;
/**
 * Maximum chunks of a frame as they arrive from the network: packets may be small, but few clients send
 * single bytes.
 */
const MAX_CHUNKS = 1_024;
const CHUNK = 256;

/** The options of a door's WebSockets. */
interface WebSocketsOptions extends WebSocketLimits {
  readonly schema: GraphQLSchema;
  /** Maximum message size, in bytes. */
  readonly maxBodyBytes: number;
}

/** Bounds the memory of a door's WebSockets. */
interface WebSocketBudgets {
  /** For results that clients have not read. */
  readonly replies: ReplyBudget;
  /** For unread messages. */
  readonly bodies: BodyBudget;
}

/** The WebSockets of a door, with the protocol graphql-transport-ws. */
class WebSockets {
  readonly #max: number;
  readonly #server: WebSocketServer;
  readonly #protocol: Server<GraphqlSocket>;
  readonly #slots: OperationSlots;
  readonly #run: RunOptions;
  readonly #budget: ReplyBudget;
  readonly #bodies: BodyBudget;
  readonly #heartbeat = new Heartbeat();
  readonly #open = new Set<GraphqlSocket>();
  #hasEnded = false;

  constructor(options: WebSocketsOptions, run: RunOptions, budgets: WebSocketBudgets) {
    this.#budget = budgets.replies;
    this.#bodies = budgets.bodies;
    this.#run = run;
    this.#max = options.maxWebSockets;
    this.#slots = new OperationSlots(options);
    this.#protocol = createProtocol(options.schema, run);
    this.#server = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      maxPayload: options.maxBodyBytes,
      maxFragments: MAX_FRAGMENTS + Math.ceil(options.maxBodyBytes / FRAGMENT),
      maxBufferedChunks: MAX_CHUNKS + Math.ceil(options.maxBodyBytes / CHUNK),
      // One message per turn of the event loop, however many have arrived.
      allowSynchronousEvents: false,
      closeTimeout: CLOSE_TIMEOUT,
      handleProtocols: () => GRAPHQL_TRANSPORT_WS_PROTOCOL,
    } as ConstructorParameters<typeof WebSocketServer>[0]);
  }

  /** The number of open WebSockets. */
  get open(): number {
    return this.#open.size;
  }

  /** The number of operations in progress on them. */
  get operations(): number {
    return this.#slots.taken;
  }

  /** The reply that turns a request's connection into a WebSocket. Throws HttpProblem. */
  accept({ socket, head }: NonNullable<ReturnType<typeof offeredUpgrade>>, ctx: RequestContext): Reply {
    judgeHandshake(ctx, this.#run.cors);
    if (this.#hasEnded) throw unavailable('STOPPING', 'The service is stopping');
    if (this.#open.size >= this.#max)
      throw unavailable('TOO_MANY_WEBSOCKETS', 'Too many WebSockets are open');
    const take = (switched: () => void) => {
      this.#server.handleUpgrade(ctx.request.raw, socket, head, (client) => {
        switched();
        const outbound = new OutboundQueue(client, socket, this.#budget);
        const options = {
          client,
          ctx,
          outbound,
          slots: this.#slots,
          connection: socket,
          budget: this.#bodies,
        };
        this.#add(client, new GraphqlSocket(options));
        this.#heartbeat.add(client, socket);
      });
    };
    return { status: 101, type: '', body: new ProtocolSwitch(take) };
  }

  #add(client: WebSocket, opened: GraphqlSocket): void {
    const { log } = opened.ctx;
    const fields = requestFields(opened.ctx);
    this.#open.add(opened);
    const closed = this.#protocol.opened(opened, opened);
    // The client violated the WebSocket protocol; ws tells it and closes the connection.
    client.on('error', (error) => log.debug({ ...fields, err: error }, 'WebSocket refused'));
    client.once('close', (code, reason) => {
      this.#open.delete(opened);
      this.#heartbeat.delete(client);
      opened.release();
      closed(code, String(reason)).catch((error: unknown) => {
        log.error({ ...fields, err: error }, 'WebSocket not closed cleanly');
      });
    });
  }

  /**
   * Completes all subscriptions and closes each WebSocket once its operations have ended; refuses new ones.
   */
  end(): void {
    this.#hasEnded = true;
    for (const socket of this.#open) socket.end();
  }
}

function unavailable(code: 'STOPPING' | 'TOO_MANY_WEBSOCKETS', message: string): HttpProblem {
  return new HttpProblem(503, code, message, { headers: { 'retry-after': '1' } });
}

/** How long a client may take to send `connection_init`, in milliseconds. */
const INIT_TIMEOUT = 3_000;

type SocketContext = Context<Record<string, unknown> | undefined, GraphqlSocket>;

/** The arguments that graphql-ws passes from `onSubscribe` to `execute` or `subscribe`. */
interface RunArgs extends ExecutionArgs {
  readonly operation: Operation;
  run(): MaybePromise<ExecutionResult | SubscriptionStream>;
}

/** Creates the graphql-ws protocol, which runs the door's own operations. */
function createProtocol(schema: GraphQLSchema, options: RunOptions): Server<GraphqlSocket> {
  const run = (args: ExecutionArgs) => (args as RunArgs).run();
  return makeServer<Record<string, unknown> | undefined, GraphqlSocket>({
    connectionInitWaitTimeout: INIT_TIMEOUT,
    onConnect: ({ extra, connectionParams }) =>
      options.policy === undefined ||
      authorizeSocket(options.policy, extra, connectionParams, options.rules !== undefined),
    onSubscribe: (context, _id, payload) => begin(context, payload),
    execute: run,
    subscribe: run,
    onNext: ({ extra: socket }, id, _payload, args, result) => {
      const isEvent = (args as RunArgs).operation.definition.operation === 'subscription';
      return socket.payload(
        id,
        masked(socket.ctx, result as ExecutionResult, options.policy),
        isEvent,
      ) as object;
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
    if ('errors' in operation) {
      const stranger = forbiddenBy(options, socket, undefined);
      return stranger === undefined ? operation.errors : [stranger];
    }
    const forbidden = forbiddenBy(options, socket, operation);
    if (forbidden !== undefined) return [forbidden];
    const refused = socket.begin(payload);
    if (refused !== undefined) return [refused];
    // The payload is held as long as the operation runs. Parsed variables may take twenty times the memory of
    // their text.
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
          const context = options.contextOf(socket.ctx, { recipient, connectionParams });
          const inputs = payload.variables ?? undefined;
          Object.assign(payload, { variables: undefined });
          if (definition.operation !== 'subscription')
            return operation.run(inputs, context, recipient, socket.ctx);
          return whenReady(operation.subscribe(inputs, context, recipient, socket.ctx), (source) =>
            Symbol.asyncIterator in source
              ? open(socket, resultsWhileValid(source, options.policy, socket.ctx))
              : source,
          );
        } catch (error) {
          return failed(socket, error);
        }
      },
    };
  }
}

/**
 * The error for an operation that the caller must not run, without one for a refused document; undefined if it may.
 */
function forbiddenBy(
  options: RunOptions,
  { ctx }: GraphqlSocket,
  operation: Operation | undefined,
): GraphQLError | undefined {
  try {
    if (operation === undefined) {
      options.policy?.requireCaller(ctx);
      return undefined;
    }
    options.policy?.countOperation(ctx);
    authorize(options, ctx, operation);
    return undefined;
  } catch (error) {
    options.policy?.noteRefusal(ctx, error);
    const { code, message } = toProblem(error);
    return new GraphQLError(message, { extensions: { code } });
  }
}

function open(socket: GraphqlSocket, source: AsyncIterable<ExecutionResult>): SubscriptionStream {
  const stream = new SubscriptionStream(source, () => socket.forget(stream));
  socket.watch(stream);
  return stream;
}

/**
 * The result if creating the context failed: a GraphQLError is shown, and any other error becomes a problem.
 */
function failed({ ctx }: GraphqlSocket, error: unknown): ExecutionResult {
  if (error instanceof GraphQLError) return { errors: [error] };
  const { status, code, message } = toProblem(error);
  if (status >= 500) ctx.log.error({ ...requestFields(ctx), err: error }, 'operation failed');
  return { errors: [new GraphQLError(message, { extensions: { code } })] };
}

/**
 * The error to show to the client: a document's error unchanged, and a failed source's error only as far as
 * it is public.
 */
function shown({ ctx }: GraphqlSocket, error: GraphQLError): GraphQLError {
  const { cause } = error;
  if (cause === undefined || error.extensions.code !== undefined) return error;
  if (cause instanceof GraphQLError) return cause;
  if (cause instanceof SlowSubscriberError) return refusal(cause.code as ErrorCode, cause.message);
  ctx.log.warn({ ...requestFields(ctx), err: cause }, 'subscription failed');
  const [message, code] = maskOf(cause);
  return refusal(code, message);
}
