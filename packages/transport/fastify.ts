import type { Readable } from 'node:stream';
import type {
  FastifyBaseLogger,
  FastifyContextConfig,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  HTTPMethods,
} from 'fastify';
import { type MaybePromise, whenReady } from '../../src/core/scheduler.ts';
import { BodyBudget } from './body/body-budget.ts';
import { BodyReader, type Done, streamBody } from './body/request-body.ts';
import type { KnownCaller } from './caller.ts';
import { onClientAbort } from './client-abort.ts';
import type { Endpoint, Reply, RequestContext } from './endpoint.ts';
import { type ErrorFormat, refusal } from './error-format.ts';
import { HttpProblem, reasonPhrase } from './problem.ts';
import { dropPieces, EventStream, eventStreamsOf, readablePieces } from './reply/reply-streams.ts';
import type { RecordedExchange, ReplyRecorder } from './request-events.ts';
import { ProtocolSwitch } from './server/door-server.ts';

const CONTEXT = Symbol('portico.requestContext');

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route's endpoint, which the fast path may run too. */
    readonly endpoint?: Endpoint;
    /** The paths of a route that serves several, by the name that each begins with. */
    readonly paths?: ReadonlyMap<string, RoutePath>;
  }
  interface FastifyRequest {
    [CONTEXT]?: FastifyRequestContext | null;
  }
}

/** A path of a route that serves several. */
export interface RoutePath {
  /** The path's template. */
  readonly url: string;
  readonly endpoint: Endpoint;
  /** Told of the requests to the path, instead of the recorder of the route. */
  record?: ReplyRecorder;
}

const PARAM = /(?::(\w+)|(\*))\/?$/;

/**
 * Adds a route that an endpoint answers; one for GET answers HEAD too. The body is read as raw bytes whatever
 * its Content-Type, so the scope must call `readRawBodies`. `fast` is false if the endpoint needs Fastify's
 * request, or sends events to clients that do not ask for an event stream.
 */
export function addEndpoint(
  app: FastifyInstance,
  method: HTTPMethods,
  url: string,
  endpoint: Endpoint,
  { fast = true }: { readonly fast?: boolean } = {},
): void {
  const route = { endpoint, param: paramOf(url) };
  addRoute(app, method, url, endpoint.bodyLimit, fast ? { endpoint } : {}, () => route);
}

/** The parameter of the path that is the name of an endpoint in `addEndpoints`. */
const NAME = 'portico_name';

/**
 * Adds the route that `addEndpoint` would add for each name: `/books/:key` and `/loans/:key` if `rest` is `/:key`. It
 * is one route of Fastify, because a thousand of them take a second and 50 MB. The endpoints have one body limit.
 */
export function addEndpoints(
  app: FastifyInstance,
  method: HTTPMethods,
  endpoints: ReadonlyMap<string, Endpoint>,
  rest: string,
): void {
  const paths = new Map<string, RoutePath>();
  const routes = new Map<string, EndpointRoute>();
  let bodyLimit = 0;
  for (const [name, endpoint] of endpoints) {
    const url = `/${name}${rest}`;
    // Fastify would prefer the other route.
    if (app.hasRoute({ method, url: app.prefix + url }))
      throw new DuplicateRouteError(method, app.prefix + url);
    paths.set(name, { url: app.prefix + url, endpoint });
    routes.set(name, { endpoint, param: paramOf(url) });
    bodyLimit = endpoint.bodyLimit;
  }
  const url = `/:${NAME}(^(?:${[...paths.keys()].join('|')})$)${rest}`;
  addRoute(app, method, url, bodyLimit, { paths }, (request) => {
    const route = routes.get(nameIn(request));
    if (route === undefined) throw new Error(`No endpoint has the name in ${request.url}`);
    return route;
  });
}

/** A route of `addEndpoints` is there already; has the code and the words of Fastify's error. */
class DuplicateRouteError extends Error {
  override readonly name = 'DuplicateRouteError';
  readonly code = 'FST_ERR_DUPLICATED_ROUTE';

  constructor(method: HTTPMethods, url: string) {
    super(`Method '${method}' already declared for route '${url}'`);
  }
}

function nameIn({ params }: FastifyRequest): string {
  return (params as Readonly<Record<string, string>>)[NAME] ?? '';
}

/** The path of a request's route, if that serves several. */
export function routePathOf(request: FastifyRequest): RoutePath | undefined {
  return request.routeOptions.config.paths?.get(nameIn(request));
}

/** The name of the last parameter of a path; undefined if the path does not end with one. */
function paramOf(url: string): string | undefined {
  const [, name, wildcard] = PARAM.exec(url) ?? [];
  return name ?? wildcard;
}

function addRoute(
  app: FastifyInstance,
  method: HTTPMethods,
  url: string,
  bodyLimit: number,
  config: FastifyContextConfig,
  routeOf: (request: FastifyRequest) => EndpointRoute,
): void {
  if (!app.hasRequestDecorator(CONTEXT)) app.decorateRequest(CONTEXT, null);
  // Nothing can be added to an application that has started.
  eventStreamsOf(app);
  app.route({
    method: method === 'GET' ? ['GET', 'HEAD'] : method,
    url,
    ...(bodyLimit > 0 ? { bodyLimit } : {}),
    config,
    onRequest(request, reply, done) {
      const route = routeOf(request);
      const { endpoint } = route;
      const ctx = new FastifyRequestContext(request, reply, route);
      request[CONTEXT] = ctx;
      // Fastify refuses an invalid Content-Type, but accepts an absent one. Set it to undefined rather than
      // deleting it: deletion makes the headers object slow to read.
      if (ctx.contentType !== null) request.raw.headers['content-type'] = undefined;
      try {
        const authorized = endpoint.authorize?.(ctx, bodyLength(request, endpoint.bodyLimit));
        if (authorized instanceof Promise) {
          authorized.then(() => done(), done);
          return;
        }
      } catch (error) {
        done(error as Error);
        return;
      }
      done();
    },
    handler: (request, reply) =>
      whenReady(request[CONTEXT]?.answer(), (answer) => answer && send(reply, answer)),
  });
}

/**
 * Makes each endpoint of a scope receive its raw body, whatever its Content-Type, as one buffer that counts
 * towards a budget: the listener's, unless the scope has its own. Routes without an endpoint get no body.
 */
export function readRawBodies(app: FastifyInstance, budget = BodyBudget.of(app)): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (request, payload, done: Done) => {
    const ctx = findRequestContext(request);
    if (ctx === undefined || ctx.takeStream(payload)) done(null);
    else new BodyReader(ctx, payload, budget, done).read();
  });
}

/** The context of a request; undefined if its route has no endpoint. */
function findRequestContext(request: FastifyRequest): FastifyRequestContext | undefined {
  return request[CONTEXT] ?? undefined;
}

/** The authenticated caller of a request; undefined if unknown. */
function callerOf(request: FastifyRequest): KnownCaller | undefined {
  return findRequestContext(request)?.caller;
}

/** Describes a finished request. */
export function exchangeOf(finished: Parameters<ReplyRecorder>[3]): RecordedExchange {
  if ('exchange' in finished) return finished.exchange();
  const { request } = finished;
  // Read the headers now so that the record does not retain the request and its body.
  const responseHeaders = finished.getHeaders();
  return {
    id: request.id,
    // Clients of a Unix socket have no address.
    client: request.ip ?? '',
    endedAt: Date.now(),
    duration: finished.elapsedTime,
    method: request.method,
    scheme: request.protocol,
    host: request.host,
    caller: callerOf(request)?.name,
    target: request.originalUrl,
    requestHeaders: request.headers,
    contentType: findRequestContext(request)?.contentType ?? request.headers['content-type'] ?? null,
    status: finished.statusCode,
    responseHeaders: () => responseHeaders,
  };
}

function bodyLength({ headers }: FastifyRequest, limit: number): number {
  const length = headers['content-length'];
  if (length === undefined && headers['transfer-encoding'] === undefined) return 0;
  return Math.min(Number(length ?? limit), limit);
}

type Refuse = (request: FastifyRequest, reply: FastifyReply) => FastifyReply;

/**
 * Returns a handler for requests that match no route of a scope: 405 with Allow for the paths in `methods`,
 * which are relative to the scope's prefix, otherwise 404.
 */
export function unroutedHandler(
  { prefix }: Pick<FastifyInstance, 'prefix'>,
  errors: ErrorFormat,
  methods: Readonly<Record<string, string>> = {},
): Refuse {
  return (request, reply) => {
    const path = request.url.slice(prefix.length).split('?', 1)[0] ?? '';
    const allow = Object.hasOwn(methods, path) ? methods[path] : undefined;
    const status = allow === undefined ? 404 : 405;
    const headers = allow === undefined ? {} : { allow };
    const problem = new HttpProblem(status, 'NO_ROUTE', reasonPhrase(status), { headers });
    return sendProblem(errors, problem, request, reply);
  };
}

/** The headers of a reply to a page of another origin. */
interface FieldsByOrigin {
  fieldsFor(origin: string | undefined): Readonly<Record<string, string>>;
}

/**
 * Answers unmatched requests of a scope with `unroutedHandler`, and writes its routes' refusals in the same
 * format. With `cors`, pages of allowed origins can read the 404 or 405.
 */
export function refuseUnrouted(
  app: FastifyInstance,
  errors: ErrorFormat,
  methods: Readonly<Record<string, string>> = {},
  cors?: FieldsByOrigin,
): void {
  const answer = unroutedHandler(app, errors, methods);
  const refuse: Refuse = (request, reply) => {
    if (cors !== undefined) addFields(reply, cors.fieldsFor(request.headers.origin));
    return answer(request, reply);
  };
  app.setNotFoundHandler(refuse);
  // Fastify refuses some unmatched paths without calling the not-found handler.
  app.setErrorHandler((error, request, reply) =>
    request.is404 ? refuse(request, reply) : sendProblem(errors, error, request, reply),
  );
}

const NO_BODY = Buffer.alloc(0);

/** A route with an endpoint. */
interface EndpointRoute {
  readonly endpoint: Endpoint;
  /** The name of the route's last parameter; undefined if the route does not end with one. */
  readonly param: string | undefined;
}

/** The context of a request that Fastify handles. */
class FastifyRequestContext implements RequestContext {
  readonly request: FastifyRequest;
  readonly contentType: string | null;
  caller: KnownCaller | undefined;
  readonly #reply: FastifyReply;
  readonly #route: EndpointRoute;
  #stream: Readable | undefined;
  #releaseBody: (() => void) | undefined;
  #isHandled = false;

  constructor(request: FastifyRequest, reply: FastifyReply, route: EndpointRoute) {
    this.request = request;
    this.contentType = request.headers['content-type'] ?? null;
    this.#reply = reply;
    this.#route = route;
  }

  get id(): string {
    return this.request.id;
  }

  get method(): string {
    return this.request.method;
  }

  get target(): string {
    return this.request.originalUrl;
  }

  get client(): string {
    return this.request.ip ?? '';
  }

  get host(): string {
    return this.request.host;
  }

  get headers(): RequestContext['headers'] {
    return this.request.headers;
  }

  get param(): string {
    const { param } = this.#route;
    if (param === undefined) return '';
    return (this.request.params as Readonly<Record<string, string>>)[param] ?? '';
  }

  get query(): RequestContext['query'] {
    return this.request.query as RequestContext['query'];
  }

  get body(): Buffer {
    const { body } = this.request;
    return Buffer.isBuffer(body) ? body : NO_BODY;
  }

  get stream(): Readable {
    return this.#stream ?? this.#open(this.request.raw);
  }

  /** Passes the body on as it arrives if the endpoint streams it; otherwise returns false. */
  takeStream(payload: Readable): boolean {
    if (this.#route.endpoint.body?.(this) !== 'stream') return false;
    this.#open(payload);
    return true;
  }

  #open(payload: Readable): Readable {
    streamBody(this.request.raw, this.#reply.raw, payload);
    this.#stream = payload;
    return payload;
  }

  /**
   * Calls `release` once the body can be freed: the reply is sent or the client has disconnected, and no
   * endpoint is using it.
   */
  holdBody(release: () => void): void {
    this.#releaseBody = release;
    this.onClose(() => {
      if (!this.#isHandled) this.#release();
    });
  }

  /** Frees the body before the reply ends. */
  dropBody(): void {
    this.request.body = undefined;
    this.#release();
  }

  /** Runs the endpoint. Throws or rejects like `Endpoint.handle`. */
  answer(): MaybePromise<Reply> {
    const { endpoint } = this.#route;
    if (this.#releaseBody === undefined) return endpoint.handle(this);
    const onAnswer = () => {
      this.#isHandled = false;
      if (this.#reply.raw.destroyed) this.#release();
    };
    this.#isHandled = true;
    try {
      const answer = endpoint.handle(this);
      if (answer instanceof Promise) return answer.finally(onAnswer);
      onAnswer();
      return answer;
    } catch (error) {
      onAnswer();
      throw error;
    }
  }

  #release(): void {
    const release = this.#releaseBody;
    this.#releaseBody = undefined;
    release?.();
  }

  get log(): FastifyBaseLogger {
    return this.request.log;
  }

  addHeaders(headers: Readonly<Record<string, string>>): void {
    addFields(this.#reply, headers);
  }

  onClose(listener: () => void): void {
    const { raw } = this.#reply;
    // The client may have disconnected while earlier hooks ran.
    if (raw.destroyed) listener();
    else raw.once('close', listener);
  }

  onAbort(listener: () => void): () => void {
    return onClientAbort(this.request.raw.socket, (close) => this.onClose(close), listener);
  }
}

/** Keeps Fastify from adding a charset: the content type is sent exactly as the door wrote it. */
function asIs(payload: unknown): string {
  return payload as string;
}

/**
 * Sends an endpoint's reply through Fastify. Returns undefined if the connection has become an event stream or
 * a WebSocket.
 */
export function send(reply: FastifyReply, { status, type, body, headers }: Reply): FastifyReply | undefined {
  if (body instanceof ProtocolSwitch) {
    reply.hijack();
    body.run(reply.raw);
    return undefined;
  }
  if (headers !== undefined) addFields(reply, headers);
  if (type !== '') reply.type(type);
  reply.code(status);
  // A 304 has no body, and Content-Length would describe the reply to an unconditional request.
  if (status === 304) return reply.send();
  // Fastify would call an empty text text/plain.
  if (type === '' && body === '') return reply.send();
  if (typeof body === 'string' || Buffer.isBuffer(body)) return reply.serializer(asIs).send(body);
  // The length is unknown before the last piece.
  if (reply.request.method === 'HEAD') {
    if (body instanceof EventStream) body.drop();
    else dropPieces(body);
    return reply.send();
  }
  if (!(body instanceof EventStream)) return reply.serializer(asIs).send(readablePieces(body, reply));
  reply.hijack();
  // A stream may last for hours, so free the body now.
  findRequestContext(reply.request)?.dropBody();
  eventStreamsOf(reply.server).open(reply, body);
  return undefined;
}

/** Answers a Fastify request with a refusal. */
export function sendProblem(
  format: ErrorFormat,
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  return send(reply, refusal(format, error, request)) ?? reply;
}

/** Adds headers to a Fastify reply; Vary is merged with the existing value. */
export function addFields(reply: FastifyReply, headers: Readonly<Record<string, string>>): FastifyReply {
  return reply.headers(withVary(reply.getHeader('vary'), headers));
}

/** Merges the Vary of `headers` with an earlier Vary value. */
export function withVary(
  before: unknown,
  headers: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  if (headers.vary === undefined || before === undefined) return headers;
  return { ...headers, vary: joinVary(String(before), headers.vary) };
}

/** Joins two Vary lists without duplicates, ignoring case (RFC 9110 12.5.5). */
function joinVary(before: string, more: string): string {
  const names = new Map<string, string>();
  for (const part of `${before},${more}`.split(',')) {
    const name = part.trim();
    const key = name.toLowerCase();
    if (name !== '' && !names.has(key)) names.set(key, name);
  }
  return names.has('*') ? '*' : [...names.values()].join(', ');
}
