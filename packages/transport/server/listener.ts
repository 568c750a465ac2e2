import { randomBytes } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import type { RequestListener } from 'node:http';
import type { Server as SecureServer } from 'node:https';
import { createRequire } from 'node:module';
import { isIP, type Socket } from 'node:net';
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerOptions,
  LogController,
} from 'fastify';
import type { Logger } from 'pino';
import { hostNameOf, isLoopback, OwnHosts, socketPathOf, type Trust } from '../../../src/core/addresses.ts';
import { BodyBudget } from '../body/body-budget.ts';
import { requestMessage } from '../body/request-body.ts';
import type { ErrorFormat } from '../error-format.ts';
import { FastPath } from '../fast-path/fast-path.ts';
import { routePathOf, sendProblem } from '../fastify.ts';
import { ReplyBudget } from '../reply/reply-budget.ts';
import { eventStreamsOf, isWhole, limitUnread } from '../reply/reply-streams.ts';
import type { RequestSpan, RequestTracing } from '../request-events.ts';
import { Connections } from './connections.ts';
import { createDoorServer, type DoorServer, refusedUpgrade } from './door-server.ts';
import {
  clientErrorHandler,
  forwarding,
  originForm,
  refuseConnect,
  refusedFraming,
  unknownHost,
} from './guards.ts';
import { type RefusedCertificate, watchCertificates } from './handshakes.ts';
import { LIMITS } from './limits.ts';
import {
  baseAddress,
  ListenError,
  type ListenerAddress,
  listenOn,
  listenOnOtherAddresses,
} from './listen.ts';
import type { LiveCertificate } from './tls.ts';

/** The options of a listener. */
export interface ListenerOptions extends ListenerAddress {
  readonly log: Logger;
  /** The format of refusals that happen before a request reaches the door. */
  readonly errors: ErrorFormat;
  /** Whether plain requests bypass Fastify; default true. */
  readonly fastPath?: boolean;
  /** Bounds the memory of request bodies; default 64 MiB for this listener. */
  readonly bodyBudget?: BodyBudget;
  /** Bounds the bytes of replies that clients have not read; default 64 MiB for this listener. */
  readonly replyBudget?: ReplyBudget;
  /** Maximum connections; default unlimited. */
  readonly maxConnections?: number;
  /** Maximum connections per address; default unlimited. */
  readonly maxConnectionsPerAddress?: number | undefined;
  /** The TLS certificate; default plain HTTP. */
  readonly certificate?: LiveCertificate | undefined;
  /** Called for each refused client certificate. */
  readonly onRefusedCertificate?: ((refused: RefusedCertificate) => void) | undefined;
  /** Records requests as spans; default none. */
  readonly tracing?: RequestTracing | undefined;
  /** The proxies whose X-Forwarded headers are trusted, as in Fastify's option; default none. */
  readonly trustProxy?: false | string[] | Trust | undefined;
  /**
   * The host names of a door that needs no credentials, in addition to `localhost` and its own addresses;
   * default any. Requests for other hosts are refused if the door listens on loopback, and elsewhere if any
   * name is given.
   */
  readonly hosts?: readonly string[] | undefined;
}

/** An HTTP listener: a Fastify instance with the limits, refusals and draining that all doors share. */
export interface Listener extends AsyncDisposable {
  readonly app: FastifyInstance;
  /**
   * From now on, hooks added to `app` or to one of its scopes see all of their requests: the fast path leaves
   * those to Fastify.
   */
  watchHooks(): void;
  /**
   * Starts to listen and resolves to the base URL, or `unix:` and a path. Rejects with ListenError, or with
   * the error that prevents the application from starting.
   */
  listen(): Promise<string>;
  /** The number of requests in progress. */
  inProgress(): number;
  /** From now on every reply closes its connection, so that clients reconnect elsewhere. */
  drain(): void;
  /**
   * Stops accepting connections, lets running requests finish until `deadline` fires, then closes their
   * connections.
   */
  close(deadline: AbortSignal): Promise<void>;
}

/** Maximum number of unknown hosts that are logged. */
const MAX_STRANGERS = 100;

/** Creates a listener that does not listen yet. */
export function createListener(options: ListenerOptions): Listener {
  const { host, errors, trustProxy = false, maxConnectionsPerAddress: maxPerAddress } = options;
  // A Unix socket needs neither TLS nor limits per address: its file's permissions decide who connects.
  const isUnix = socketPathOf(options.port) !== undefined;
  const certificate = isUnix ? undefined : options.certificate;
  let ownHosts = ownHostsOf(options, isLoopback(host) || host.toLowerCase() === 'localhost');
  let draining = false;
  const idPrefix = randomBytes(4).toString('hex');
  let requests = 0;
  const nextId = () => `${idPrefix}-${(++requests).toString(36)}`;
  const { replyBudget = new ReplyBudget() } = options;
  const { bodyBudget = new BodyBudget({ max: LIMITS.maxBodies }) } = options;
  const follows = forwarding(trustProxy);
  const message = requestMessage(bodyBudget, follows.client);
  const connections = new Connections({
    max: options.maxConnections ?? Number.POSITIVE_INFINITY,
    // Clients of a Unix socket have no address.
    maxPerAddress: isUnix ? undefined : maxPerAddress,
  });
  const servers: DoorServer[] = [];
  const createServer = (handle: RequestListener) => {
    const tls = certificate?.optionsOf(options.door);
    const server = createDoorServer({ handle, connections, main: servers[0], tls, message });
    certificate?.serve(server as unknown as SecureServer, options.door);
    if (tls?.requestCert) watchCertificates(server, noteCertificate);
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
    // A child logger per request costs more than the request itself; entries carry `reqId` instead.
    childLoggerFactory: (logger) => logger,
    genReqId: nextId,
    requestIdHeader: false,
    trustProxy,
    rewriteUrl: (request) => originForm(request.url ?? '/'),
    routerOptions: { maxParamLength: LIMITS.maxHeaderBytes },
    // Fastify calls this before any hook.
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
  const strangers = new Set<string>();
  const fastPath = new FastPath(app, {
    errors,
    log: app.log,
    connections,
    bodyBudget,
    replyBudget,
    nextId,
    forwarding: follows,
    ownHosts: () => ownHosts,
    isDraining: () => draining,
    tracing: options.tracing,
    scheme: certificate === undefined ? 'http' : 'https',
  });
  if (options.tracing !== undefined) traceRequests(app, options.tracing);
  app.addHook('onRequest', (request, reply, done) => {
    addCommonHeaders(request, reply);
    const refused = refusedFraming(request.raw) ?? refusedUpgrade(request.raw);
    if (refused !== undefined) {
      reply.header('connection', 'close');
      sendProblem(errors, refused, request, reply);
      return;
    }
    const stranger = ownHosts?.strangerOf(request);
    if (stranger === undefined) return done();
    noteStranger(stranger);
    sendProblem(errors, unknownHost(stranger), request, reply);
  });
  app.addHook('onSend', (request, reply, _payload, done) => {
    if (reply.getHeader('connection') === 'close') connections.of(request.raw.socket)?.closeBehindReply();
    done();
  });
  bodyBudget.attach(app);
  limitUnread(app, replyBudget);
  app.setErrorHandler((error, request, reply) => sendProblem(errors, error, request, reply));
  // The caller may also close the instance directly.
  app.addHook('preClose', async () => {
    drain();
    await Promise.all(servers.map((server) => server.stopAccepting()));
  });
  eventStreamsOf(app);

  /** Logs each unknown host once and limits their number, because attackers can choose the names. */
  function noteStranger(authority: string) {
    const name = hostNameOf(authority);
    if (name === undefined || strangers.has(name) || strangers.size >= MAX_STRANGERS) return;
    strangers.add(name);
    options.log.warn({ host: name, hint: 'add it to HTTP_HOSTS if it is yours' }, 'unknown host refused');
  }

  function noteCertificate(refused: RefusedCertificate) {
    options.log.debug(refused, 'client certificate refused');
    options.onRefusedCertificate?.(refused);
  }

  function addCommonHeaders(request: FastifyRequest, reply: FastifyReply): void {
    reply.header('x-request-id', request.id).header('x-content-type-options', 'nosniff');
    if (draining) reply.header('connection', 'close');
  }

  function drain(): void {
    draining = true;
    // Replies to requests that are already in progress.
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
    async listen() {
      // Report a door that cannot be built by its own error, not as one about the port.
      await app.ready();
      if (options.fastPath ?? true) fastPath.install(app);
      if (!isUnix && isIP(host) === 0) ownHosts = ownHostsOf(options, await resolvesToLoopback(host));
      try {
        await listenOn(app, options);
      } catch (cause) {
        throw new ListenError(options, cause);
      }
      const others = await listenOnOtherAddresses(host, app.server, () =>
        createAnother().on('clientError', (error, socket) => onClientError(error, socket as Socket)),
      );
      for (const server of others) fastPath.serve(server);
      return baseAddress(app, host);
    },
    inProgress: () => [...connections].reduce((sum, connection) => sum + connection.inProgress, 0),
    drain,
    close,
    [Symbol.asyncDispose]: () => close(AbortSignal.abort()),
  };
}

/** The host names that requests may ask for; undefined for any. */
function ownHostsOf({ host, hosts, port }: ListenerOptions, isLocal: boolean): OwnHosts | undefined {
  // Browsers cannot reach a Unix socket.
  if (hosts === undefined || socketPathOf(port) !== undefined) return undefined;
  if (!isLocal && hosts.length === 0) return undefined;
  return new OwnHosts([host, ...hosts], isLocal ? 'loopback' : 'all');
}

/**
 * Whether a name resolves to loopback only, as `localhost` does. A name that does not resolve makes listening
 * fail later.
 */
async function resolvesToLoopback(name: string): Promise<boolean> {
  const found = await lookup(name, { all: true }).catch(() => []);
  return found.length > 0 && found.every(({ address }) => isLoopback(address));
}

/** Records Fastify's requests as spans. Call it before any other hook is added. */
function traceRequests(app: FastifyInstance, tracing: RequestTracing): void {
  const spans = new WeakMap<FastifyRequest, RequestSpan>();
  app.addHook('onRequest', (request, reply, done) => {
    const { method, originalUrl: target, protocol, ip: client = '', headers, is404 } = request;
    const span = tracing.begin({
      method,
      route: is404 ? undefined : (routePathOf(request)?.url ?? request.routeOptions.url),
      target,
      scheme: protocol === 'https' ? 'https' : 'http',
      client,
      headers,
    });
    if (span === undefined) {
      done();
      return;
    }
    spans.set(request, span);
    // Fastify does not report replies whose clients have disconnected.
    const { raw } = reply;
    const end = () => {
      raw.off('finish', end).off('close', end);
      span.end(isWhole(raw) ? reply.statusCode : 0);
    };
    raw.on('finish', end).on('close', end);
    span.run(done);
  });
  // Body events run in the async context of the connection.
  app.addHook('preHandler', (request, _reply, done) => {
    const span = spans.get(request);
    if (span === undefined) done();
    else span.run(done);
  });
}

type Compilers = NonNullable<NonNullable<FastifyServerOptions['schemaController']>['compilersFactory']>;
type Factory = (...args: readonly unknown[]) => never;

/**
 * Fastify's own schema compilers, loaded only if a route has a schema. Our doors have none, and loading the
 * compilers takes a tenth of the startup time and several megabytes.
 */
export function lazyCompilers(): Required<Compilers> {
  const lazy = (name: string): Factory => {
    let factory: Factory | undefined;
    return (...args) => {
      // They are dependencies of Fastify, so they resolve from its folder.
      factory ??= (createRequire(import.meta.resolve('fastify'))(name) as () => Factory)();
      return factory(...args);
    };
  };
  return {
    buildValidator: lazy('@fastify/ajv-compiler'),
    buildSerializer: lazy('@fastify/fast-json-stringify-compiler'),
  };
}
