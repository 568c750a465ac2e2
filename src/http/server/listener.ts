import { randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify';
import type { Logger } from 'pino';
import { type ErrorFormat, sendProblem } from '../error-format.ts';
import { type ExchangeLog, recordOf } from '../exchange-log.ts';
import { FastPath } from '../fast-path/fast-path.ts';
import { replyInProgress } from '../fast-path/node-internals.ts';
import { LIMITS } from '../limits.ts';
import { clientErrorHandler } from './client-error.ts';
import { lazyCompilers } from './lazy-compilers.ts';
import { ListenError, type ListenerAddress } from './listen-error.ts';
import { originForm, refusedFraming } from './request-guard.ts';

/** How a listener is set up. */
export interface ListenerOptions extends ListenerAddress {
  readonly log: Logger;
  /** The format of refusals that happen before a request reaches the door. */
  readonly errors: ErrorFormat;
  /** Whether plain requests are answered without Fastify; default true. */
  readonly fastPath?: boolean;
  /** The proxies whose X-Forwarded headers count, as Fastify takes them; default none. */
  readonly trustProxy?: boolean | string[];
}

/** One HTTP listener: a Fastify instance with the limits, refusals and draining that all doors share. */
export interface Listener extends AsyncDisposable {
  readonly app: FastifyInstance;
  /** From now on a hook that is added to `app`, or to a scope of it, sees all of their requests: the fast path leaves them to Fastify. */
  watchHooks(): void;
  /** Records the last exchanges in a log. */
  recordExchanges(log: ExchangeLog): void;
  /** Starts to listen and resolves to the base URL; fails with ListenError, or with what keeps the door from being built. */
  listen(): Promise<string>;
  /** From now on every reply closes its connection, so that clients go elsewhere for the next request. */
  drain(): void;
  /** Takes no new connection, lets running requests finish until `deadline` fires, then cuts them. */
  close(deadline: AbortSignal): Promise<void>;
}

/** How often a closing listener looks for connections that have become idle, in milliseconds. */
const SWEEP_INTERVAL = 50;

/** Builds a listener that does not listen yet. */
export function createListener(options: ListenerOptions): Listener {
  const { door, host, errors, trustProxy = false } = options;
  let draining = false;
  const idPrefix = randomBytes(4).toString('hex');
  let requests = 0;
  const nextId = () => `${idPrefix}-${(++requests).toString(36)}`;

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
    clientErrorHandler: clientErrorHandler(errors),
    return503OnClosing: false,
    schemaController: { compilersFactory: lazyCompilers() },
    forceCloseConnections: 'idle',
    requestTimeout: LIMITS.requestTimeout,
    connectionTimeout: LIMITS.idleReplyTimeout,
    keepAliveTimeout: LIMITS.keepAliveTimeout,
    maxRequestsPerSocket: LIMITS.maxRequestsPerConnection,
    http: {
      headersTimeout: LIMITS.headersTimeout,
      connectionsCheckingInterval: LIMITS.checkInterval,
      maxHeaderSize: LIMITS.maxHeaderBytes,
      insecureHTTPParser: false,
      // Refused by us, in the door's own format.
      requireHostHeader: false,
    },
  });
  let exchangeLog: ExchangeLog | undefined;
  const fastPath = new FastPath(app, {
    errors,
    log: app.log,
    nextId,
    trustsProxies: trustProxy !== false,
    isDraining: () => draining,
    exchangeLog: () => exchangeLog,
  });
  app.addHook('onResponse', (request, reply, done) => {
    exchangeLog?.record(recordOf(request, reply));
    done();
  });
  const sockets = new Set<Socket>();
  app.server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  app.server.maxHeadersCount = LIMITS.maxHeaders;
  app.server.maxConnections = LIMITS.maxConnections;

  app.addHook('onRequest', (request, reply, done) => {
    addCommonHeaders(request, reply);
    const refused = refusedFraming(request.raw);
    if (refused === undefined) return done();
    reply.header('connection', 'close');
    sendProblem(errors, refused, request, reply);
  });
  app.setErrorHandler((error, request, reply) => sendProblem(errors, error, request, reply));
  // A caller may close the instance itself.
  app.addHook('preClose', (done) => {
    drain();
    done();
  });

  function addCommonHeaders(request: FastifyRequest, reply: FastifyReply): void {
    reply.header('x-request-id', request.id).header('x-content-type-options', 'nosniff');
    if (draining) reply.header('connection', 'close');
  }

  function drain(): void {
    draining = true;
    // Replies to requests that began before.
    for (const socket of sockets) {
      const reply = replyInProgress(socket);
      if (reply?.headersSent === false) reply.setHeader('connection', 'close');
    }
  }

  async function close(deadline: AbortSignal): Promise<void> {
    drain();
    const cut = () => app.server.closeAllConnections();
    deadline.addEventListener('abort', cut, { once: true });
    if (deadline.aborted) cut();
    // A reply that had begun before the drain leaves its connection open and unused; and while a hook of the user holds
    // up the close, new connections come after the cut.
    const sweep = setInterval(() => {
      if (deadline.aborted) cut();
      else app.server.closeIdleConnections();
    }, SWEEP_INTERVAL);
    try {
      await app.close();
    } finally {
      clearInterval(sweep);
      deadline.removeEventListener('abort', cut);
    }
  }

  return {
    app,
    watchHooks: () => fastPath.watchHooks(app),
    recordExchanges(log) {
      exchangeLog = log;
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
      return baseUrl(app, host);
    },
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
