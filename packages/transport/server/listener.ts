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
import { isLoopback, socketPathOf, type Trust } from '../../../src/core/addresses.ts';
import { BodyBudget, DEFAULT_MAX_BODIES, setBodyBudget } from '../body/body-budget.ts';
import { requestMessage } from '../body/request-message.ts';
import { type ErrorFormat, sendProblem } from '../error-format.ts';
import { FastPath } from '../fast-path/fast-path.ts';
import { callerOf } from '../fastify.ts';
import { forwarding, hostNameOf, OwnHosts, unknownHost } from '../hosts.ts';
import { type ExchangeRecorder, recordOf } from '../records.ts';
import { isWhole } from '../reply/event-streams.ts';
import { ReplyBudget } from '../reply/reply-budget.ts';
import { limitUnread } from '../reply/reply-pieces.ts';
import { isAudited, type OnRefused, type RequestSpan, type RequestTracing } from '../request-events.ts';
import { Connections } from './connections.ts';
import { createDoorServer, type DoorServer, refusedUpgrade } from './door-server.ts';
import { clientErrorHandler, originForm, refuseConnect, refusedFraming } from './guards.ts';
import { type OnRefusedCertificate, type RefusedCertificate, watchCertificates } from './handshakes.ts';
import { LIMITS } from './limits.ts';
import {
  baseAddress,
  ListenError,
  type ListenerAddress,
  listenOn,
  listenOnOtherAddresses,
} from './listen.ts';
import type { LiveCertificate } from './tls.ts';

/** How a listener is set up. */
export interface ListenerOptions extends ListenerAddress {
  readonly log: Logger;
  /** The format of refusals that happen before a request reaches the door. */
  readonly errors: ErrorFormat;
  /** Whether plain requests are answered without Fastify; default true. */
  readonly fastPath?: boolean;
  /** Bounds what bodies hold at the same time; default 64 MiB for this listener. */
  readonly bodyBudget?: BodyBudget;
  /** Bounds what clients have not read of their replies; default 64 MiB for this listener. */
  readonly replyBudget?: ReplyBudget;
  /** Maximum connections; default 10,000. */
  readonly maxConnections?: number;
  /** Connections that one address may have; default no limit of its own. */
  readonly maxConnectionsPerAddress?: number | undefined;
  /** What the door speaks TLS with; default plain HTTP. */
  readonly certificate?: LiveCertificate | undefined;
  /** Called for each request that is refused for who sent it, or how often. */
  readonly onRefused?: OnRefused | undefined;
  /** Called for each client that is refused for its certificate. */
  readonly onRefusedCertificate?: OnRefusedCertificate | undefined;
  /** Records requests as spans; default none. */
  readonly tracing?: RequestTracing | undefined;
  /** The proxies whose X-Forwarded headers count, as Fastify takes them; default none. */
  readonly trustProxy?: false | string[] | Trust | undefined;
  /**
   * The names by which clients ask for a door that needs no credentials, beside `localhost` and its own addresses; default
   * any. Requests for others are refused while the door listens on loopback, and elsewhere if any name is given.
   */
  readonly hosts?: readonly string[] | undefined;
}

/** One HTTP listener: a Fastify instance with the limits, refusals and draining that all doors share. */
export interface Listener extends AsyncDisposable {
  readonly app: FastifyInstance;
  /** From now on a hook that is added to `app`, or to a scope of it, sees all of their requests: the fast path leaves them to Fastify. */
  watchHooks(): void;
  /** From now on a recorder gets each request, after those that were given before. */
  recordExchanges(recorder: ExchangeRecorder): void;
  /** Starts to listen and resolves to the base URL, or `unix:` and a path; fails with ListenError, or with what keeps the door from being built. */
  listen(): Promise<string>;
  /** The number of requests in progress. */
  inProgress(): number;
  /** From now on every reply closes its connection, so that clients go elsewhere for the next request. */
  drain(): void;
  /** Takes no new connection, lets running requests finish until `deadline` fires, then cuts them. */
  close(deadline: AbortSignal): Promise<void>;
}

/** Unknown hosts that the log names. */
const MAX_STRANGERS = 100;

/** Builds a listener that does not listen yet. */
export function createListener(options: ListenerOptions): Listener {
  const { host, errors, trustProxy = false, maxConnectionsPerAddress: maxPerAddress } = options;
  // Who may open the file of a Unix socket is known already.
  const isUnix = socketPathOf(options.port) !== undefined;
  const certificate = isUnix ? undefined : options.certificate;
  let ownHosts = ownHostsOf(options, isLoopback(host) || host.toLowerCase() === 'localhost');
  let draining = false;
  const idPrefix = randomBytes(4).toString('hex');
  let requests = 0;
  const nextId = () => `${idPrefix}-${(++requests).toString(36)}`;
  const { replyBudget = new ReplyBudget() } = options;
  const { bodyBudget = new BodyBudget({ max: DEFAULT_MAX_BODIES }) } = options;
  const follows = forwarding(trustProxy);
  const message = requestMessage(bodyBudget, follows.client);
  const connections = new Connections({
    max: options.maxConnections ?? LIMITS.maxConnections,
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
  const strangers = new Set<string>();
  let recorder: ExchangeRecorder | undefined;
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
    onRefused: options.onRefused,
    tracing: options.tracing,
    scheme: certificate === undefined ? 'http' : 'https',
    recorder: () => recorder,
  });
  if (options.tracing !== undefined) traceRequests(app, options.tracing);
  app.addHook('onResponse', (request, reply, done) => {
    recorder?.record(recordOf(request, reply));
    done();
  });
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
    if (isAudited(reply.statusCode)) noteRefusal(request, reply);
    done();
  });
  setBodyBudget(app, bodyBudget);
  limitUnread(app, replyBudget);
  app.setErrorHandler((error, request, reply) => sendProblem(errors, error, request, reply));
  // A caller may close the instance itself.
  app.addHook('preClose', async () => {
    drain();
    await Promise.all(servers.map((server) => server.stopAccepting()));
  });

  function noteRefusal(request: FastifyRequest, reply: FastifyReply) {
    const { id, ip: client = '', method, originalUrl: target, headers } = request;
    const code = String(reply.getHeader('x-error-code') ?? '');
    const caller = callerOf(request)?.name;
    options.onRefused?.({ id, client, method, target, headers, status: reply.statusCode, code, caller });
  }

  /** Names each unknown host once: whoever can have one resolve to this machine chooses how many there are. */
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
              record(ctx) {
                before.record(ctx);
                next.record(ctx);
              },
            };
    },
    async listen() {
      // A door that cannot be built fails with its own error, not with one about the port.
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

/** The names that requests may ask for; undefined for any. */
function ownHostsOf({ host, hosts, port }: ListenerOptions, isLocal: boolean): OwnHosts | undefined {
  // No browser reaches a Unix socket.
  if (hosts === undefined || socketPathOf(port) !== undefined) return undefined;
  if (!isLocal && hosts.length === 0) return undefined;
  return new OwnHosts([host, ...hosts], isLocal ? 'loopback' : 'all');
}

/** Whether a name leads to this machine alone, such as `localhost`; one that does not resolve fails when it is listened on. */
async function resolvesToLoopback(name: string): Promise<boolean> {
  const found = await lookup(name, { all: true }).catch(() => []);
  return found.length > 0 && found.every(({ address }) => isLoopback(address));
}

/** Records what Fastify answers as spans. Call it before any other hook is added. */
function traceRequests(app: FastifyInstance, tracing: RequestTracing): void {
  const spans = new WeakMap<FastifyRequest, RequestSpan>();
  app.addHook('onRequest', (request, reply, done) => {
    const { method, originalUrl: target, protocol, ip: client = '', headers, is404 } = request;
    const span = tracing.begin({
      method,
      route: is404 ? undefined : request.routeOptions.url,
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
    // Fastify tells of no reply whose client has left.
    const { raw } = reply;
    const end = () => {
      raw.off('finish', end).off('close', end);
      span.end(isWhole(raw) ? reply.statusCode : 0);
    };
    raw.on('finish', end).on('close', end);
    span.run(done);
  });
  // A body arrives in the context of its connection.
  app.addHook('preHandler', (request, _reply, done) => {
    const span = spans.get(request);
    if (span === undefined) done();
    else span.run(done);
  });
}

type Compilers = NonNullable<NonNullable<FastifyServerOptions['schemaController']>['compilersFactory']>;
type Factory = (...args: readonly unknown[]) => never;

/**
 * Fastify's own compilers of route schemas, loaded when a route has one. Our doors have none, and to load them
 * costs a tenth of the start and several megabytes.
 */
export function lazyCompilers(): Required<Compilers> {
  const lazy = (name: string): Factory => {
    let factory: Factory | undefined;
    return (...args) => {
      // They are dependencies of Fastify, so they are resolved from its folder.
      factory ??= (createRequire(import.meta.resolve('fastify'))(name) as () => Factory)();
      return factory(...args);
    };
  };
  return {
    buildValidator: lazy('@fastify/ajv-compiler'),
    buildSerializer: lazy('@fastify/fast-json-stringify-compiler'),
  };
}
