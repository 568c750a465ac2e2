import type { Readable } from 'node:stream';
import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  HTTPMethods,
  preHandlerHookHandler,
  preParsingHookHandler,
} from 'fastify';
import { whenReady } from '../../src/core/maybe-promise.ts';
import { streamBody } from './body/request-message.ts';
import type { KnownCaller } from './caller.ts';
import type { Endpoint, StreamedBodies } from './endpoint.ts';
import { type ErrorFormat, sendProblem } from './error-format.ts';
import { addFields, FastifyRequestContext, send } from './fastify-context.ts';
import { HttpProblem, reasonPhrase } from './problem.ts';
import { replyBudgetOf } from './reply/reply-pieces.ts';

const EXCHANGE = Symbol('portico.exchange');

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route's endpoint, which the fast path may run too. */
    readonly endpoint?: Endpoint;
  }
  interface FastifyRequest {
    [EXCHANGE]?: FastifyRequestContext | null;
  }
}

const PARAM = /(?::(\w+)|(\*))\/?$/;

/** How an endpoint's route differs from the default. */
interface EndpointRouteOptions {
  /**
   * Answers requests that accept an event stream, which the fast path leaves to Fastify; calls `done` for all
   * others.
   */
  readonly streams?: preHandlerHookHandler;
  /** False if the route has its own HEAD handler; default true. */
  readonly exposeHeadRoute?: boolean;
  /** False if the endpoint needs Fastify's request; default true. */
  readonly fast?: boolean;
}

/**
 * Adds a route that an endpoint answers. The body is read as raw bytes whatever its Content-Type, so the
 * scope must call `readRawBodies`.
 */
export function addEndpoint(
  app: FastifyInstance,
  method: HTTPMethods,
  url: string,
  endpoint: Endpoint,
  { streams, exposeHeadRoute = true, fast = true }: EndpointRouteOptions = {},
): void {
  const [, name, wildcard] = PARAM.exec(url) ?? [];
  const param = name ?? wildcard;
  if (!app.hasRequestDecorator(EXCHANGE)) app.decorateRequest(EXCHANGE, null);
  // Creates a reply budget if the application has none.
  replyBudgetOf(app);
  app.route({
    method,
    url,
    exposeHeadRoute,
    ...(endpoint.bodyLimit > 0 ? { bodyLimit: endpoint.bodyLimit } : {}),
    ...(streams === undefined ? {} : { preHandler: streams }),
    ...(endpoint.streamed === undefined ? {} : { preParsing: streaming(endpoint.streamed) }),
    config: fast ? { endpoint } : {},
    onRequest(request, reply, done) {
      const ctx = new FastifyRequestContext(request, reply, param);
      request[EXCHANGE] = ctx;
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
      whenReady(requestContextOf(request).handle(endpoint), (answer) => send(reply, answer)),
  });
}

/** Answers requests with streamed bodies before Fastify reads the body. */
function streaming({ takes, handle }: StreamedBodies): preParsingHookHandler {
  return (request, reply, payload, done) => {
    const ctx = requestContextOf(request);
    if (!takes(ctx)) return done(null, payload as Readable);
    const body = payload as Readable;
    streamBody(request.raw, reply.raw, body);
    const answered = async () => send(reply, await handle(ctx, body));
    answered().catch((error: unknown) => reply.send(error));
  };
}

/** The context of a request whose route has an endpoint. Throws TypeError for other routes. */
export function requestContextOf(request: FastifyRequest): FastifyRequestContext {
  const ctx = findRequestContext(request);
  if (ctx === undefined) throw new TypeError('The route has no endpoint');
  return ctx;
}

/** The context of a request; undefined if its route has no endpoint. */
export function findRequestContext(request: FastifyRequest): FastifyRequestContext | undefined {
  return request[EXCHANGE] ?? undefined;
}

/** Sets the context of a request whose route is a plain Fastify route. */
export function setRequestContext(request: FastifyRequest, ctx: FastifyRequestContext): void {
  request[EXCHANGE] = ctx;
}

/** The authenticated caller of a request; undefined if unknown. */
export function callerOf(request: FastifyRequest): KnownCaller | undefined {
  return findRequestContext(request)?.caller;
}

/** The Content-Type header of any request; null if absent. */
export function contentTypeOf(request: FastifyRequest): string | null {
  return findRequestContext(request)?.contentType ?? request.headers['content-type'] ?? null;
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
