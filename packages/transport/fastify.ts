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
    /** The implementation of the route, which the fast path may run too. */
    readonly endpoint?: Endpoint;
  }
  interface FastifyRequest {
    [EXCHANGE]?: FastifyRequestContext | null;
  }
}

const PARAM = /(?::(\w+)|(\*))\/?$/;

/** How an endpoint's route differs from a usual one. */
interface EndpointRouteOptions {
  /** Answers requests that accept an event stream, which the fast path leaves to Fastify; calls `done` for all else. */
  readonly streams?: preHandlerHookHandler;
  /** False for a route that has a HEAD of its own; default true. */
  readonly exposeHeadRoute?: boolean;
  /** False for an endpoint that needs Fastify's own request; default true. */
  readonly fast?: boolean;
}

/**
 * Adds a route that an endpoint answers. Its body is read byte for byte whatever its label says, so the scope needs
 * `readRawBodies`.
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
  // The replies of an application that has no bound have one here.
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
      // Fastify refuses a label that is no media type, and does not look where there is none. Deleting the field would
      // make the headers slow to read.
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

/** Answers requests with streamed bodies before anybody reads those. */
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

/** The request of a request that an endpoint's route got. */
export function requestContextOf(request: FastifyRequest): FastifyRequestContext {
  const ctx = findRequestContext(request);
  if (ctx === undefined) throw new TypeError('The route has no endpoint');
  return ctx;
}

/** The request of any request; undefined where no endpoint got it. */
export function findRequestContext(request: FastifyRequest): FastifyRequestContext | undefined {
  return request[EXCHANGE] ?? undefined;
}

/** Has a route of Fastify's own use a request for a request. */
export function setRequestContext(request: FastifyRequest, ctx: FastifyRequestContext): void {
  request[EXCHANGE] = ctx;
}

/** Who makes a request, where that is known. */
export function callerOf(request: FastifyRequest): KnownCaller | undefined {
  return findRequestContext(request)?.caller;
}

/** The Content-Type header of any request; null without one. */
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
 * Makes what answers requests that no route of a scope takes: 405 with Allow for the paths of `methods`, which are
 * relative to the scope's prefix, else 404.
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

/** The header fields of a reply to a page of another origin. */
interface FieldsByOrigin {
  fieldsFor(origin: string | undefined): Readonly<Record<string, string>>;
}

/**
 * Answers so what no route of a scope takes, and writes the refusals of its routes in the same format. Pages that may use
 * the door may read that nothing is there.
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
  // Fastify refuses some paths that no route takes before it asks that handler.
  app.setErrorHandler((error, request, reply) =>
    request.is404 ? refuse(request, reply) : sendProblem(errors, error, request, reply),
  );
}
