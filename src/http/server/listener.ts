import { randomBytes } from 'node:crypto';
import type { RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify';
import type { Logger } from 'pino';
import { ReplyBudget } from '../body/reply-budget.ts';
import type { TrustedHop } from '../connections/client-address.ts';
import { Connections } from '../connections/connections.ts';
import { type ErrorFormat, sendProblem } from '../error-format.ts';
import { type ExchangeRecorder, recordOf } from '../exchange-log.ts';
import { FastPath } from '../fast-path/fast-path.ts';
import { LIMITS } from '../limits.ts';
import { clientErrorHandler, refuseConnect } from './client-error.ts';
import { DoorServer } from './door-server.ts';
import { lazyCompilers } from './lazy-compilers.ts';
import { limitUnread } from './limit-unread.ts';
import { ListenError, type ListenerAddress } from './listen-error.ts';
import { listenOnOtherAddresses } from './other-addresses.ts';
import { originForm, refusedFraming } from './request-guard.ts';
import { refusedUpgrade } from './upgrades.ts';

/** How a listener is set up. */
export interface ListenerOptions extends ListenerAddress {
  readonly log: Logger;
  /** The format of refusals that happen before a request reaches the door. */
  readonly errors: ErrorFormat;
  /** Whether plain requests are answered without Fastify; default true. */
  readonly fastPath?: boolean;
  /** Bounds what clients have not read of their replies; default 64 MiB for this listener. */
  readonly replyBudget?: ReplyBudget;
  /** Maximum connections; default 10,000. */
  readonly maxConnections?: number;
  /** Connections that one address may have; default no limit of its own. */
  readonly maxConnectionsPerAddress?: number | undefined;
  /** The proxies whose X-Forwarded headers count; default none. */
  readonly trustProxy?: false | TrustedHop | undefined;
}

/** One HTTP listener: a Fastify instance with the limits, refusals and draining that all doors share. */
export interface Listener extends AsyncDisposable {
  readonly app: FastifyInstance;
  /** From now on a hook that is added to `app`, or to a scope of it, sees all of their requests: the fast path leaves them to Fastify. */
  watchHooks(): void;
  /** From now on a recorder gets each exchange, after those that were given before. */
  recordExchanges(recorder: ExchangeRecorder): void;
  /** Starts to listen and resolves to the base URL; fails with ListenError, or with what keeps the door from being built. */
  listen(): Promise<string>;
  /** The number of requests in progress. */
  inProgress(): number;
  /** From now on every reply closes its connection, so that clients go elsewhere for the next request. */
  drain(): void;
  /** Takes no new connection, lets running requests finish until `deadline` fires, then cuts them. */
  close(deadline: AbortSignal): Promise<void>;
}

const DEFAULT_MAX_UNREAD = 64 * 1024 * 1024;

/** Builds a listener that does not listen yet. */
export function createListener(options: ListenerOptions): Listener {
  const { door, host, errors, trustProxy = false, maxConnectionsPerAddress: maxPerAddress } = options;
  let draining = false;
  const idPrefix = randomBytes(4).toString('hex');
  let requests = 0;
  const nextId = () => `${idPrefix}-${(++requests).toString(36)}`;
  const { replyBudget = new ReplyBudget(DEFAULT_MAX_UNREAD) } = options;
  const connections = new Connections({
    max: options.maxConnections ?? LIMITS.maxConnections,
    maxPerAddress,
  });
  const servers: DoorServer[] = [];
  const createServer = (handle: RequestListener) => {
    const server = new DoorServer(handle, connections, servers[0]);
    server.on('connect', ({ socket }) => {
      const connection = connections.of(socket);
      if (connection !== undefined) refuseConnect(errors, connection);
    });
    servers.push(server);
    return server;
  };

  let createAnother: () => DoorServer;
  const onClientError = clientErrorHandler(errors, connections, options.log);

  const app: FastifyInstance = Fastify({
    loggerInstance: options.log as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    // A child logger per request costs more than the request; entries carry `reqId` themselves.
    childLoggerFactory: (logger) => logger,
    genReqId: nextId,
    requestIdHeader: false,
    trustProxy,
    rewriteUrl: (request) => originForm(request.url ?? '/'),
    routerOptions: { maxParamLength: LIMITS.maxHeaderBytes },
    // Comes before any hook.
    frameworkErrors: (error, request, reply) => {
      addCommonHeaders(request, reply);
      sendProblem(errors, error, request, reply);
    },
    clientErrorHandler: onClientError,
    return503OnClosing: false,
    schemaController: { compilersFactory: lazyCompilers() },
    forceCloseConnections: 'idle',
    serverFactory(handle) {
      createAnother = () => createServer(handle);
      return createAnother();
    },
  });
  let recorder: ExchangeRecorder | undefined;
  const fastPath = new FastPath(app, {
    errors,
    log: app.log,
    connections,
    replyBudget,
    nextId,
    trusts: trustProxy === false ? undefined : trustProxy,
    isDraining: () => draining,
    recorder: () => recorder,
  });
  app.addHook('onResponse', (request, reply, done) => {
    recorder?.record(recordOf(request, reply));
    done();
  });
  app.addHook('onRequest', (request, reply, done) => {
    addCommonHeaders(request, reply);
    const refused = refusedFraming(request.raw) ?? refusedUpgrade(request.raw);
    if (refused === undefined) return done();
    reply.header('connection', 'close');
    sendProblem(errors, refused, request, reply);
  });
  app.addHook('onSend', ({ raw }, reply, _payload, done) => {
    if (reply.getHeader('connection') === 'close') connections.of(raw.socket)?.closeBehindReply();
    done();
  });
  limitUnread(app, replyBudget);
  app.setErrorHandler((error, request, reply) => sendProblem(errors, error, request, reply));
  // A caller may close the instance itself.
  app.addHook('preClose', async () => {
    drain();
    await Promise.all(servers.map((server) => server.stopAccepting()));
  });

  function addCommonHeaders(request: FastifyRequest, reply: FastifyReply): void {
    reply.header('x-request-id', request.id).header('x-content-type-options', 'nosniff');
    if (draining) reply.header('connection', 'close');
  }

  function drain(): void {
    draining = true;
    // Replies to requests that began before.
    for (const { reply } of connections) {
      if (reply?.headersSent === false) reply.setHeader('connection', 'close');
    }
  }

  async function close(deadline: AbortSignal): Promise<void> {
    drain();
    const cut = () => connections.cut();
    deadline.addEventListener('abort', cut, { once: true });
    if (deadline.aborted) cut();
    try {
      await app.close();
    } finally {
      deadline.removeEventListener('abort', cut);
    }
  }

  return {
    app,
    watchHooks: () => fastPath.watchHooks(app),
    recordExchanges(next) {
      const before = recorder;
      recorder =
        before === undefined
          ? next
          : {
              record(exchange) {
                before.record(exchange);
                next.record(exchange);
              },
            };
    },
    async listen() {
      // A door that cannot be built fails with its own error, not with one about the port.
      await app.ready();
      if (options.fastPath ?? true) fastPath.install(app);
      try {
        await app.listen({ host, port: options.port, listenTextResolver: () => `${door} door listens` });
      } catch (cause) {
        throw new ListenError(options, cause);
      }
      const others = await listenOnOtherAddresses(host, app.server, () =>
        createAnother().on('clientError', (error, socket) => onClientError(error, socket as Socket)),
      );
      for (const server of others) fastPath.serve(server);
      return baseUrl(app, host);
    },
    inProgress: () => [...connections].reduce((sum, connection) => sum + connection.inProgress, 0),
    drain,
    close,
    [Symbol.asyncDispose]: () => close(AbortSignal.abort()),
  };
}

function baseUrl(app: FastifyInstance, host: string): string {
  const address = app.server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
