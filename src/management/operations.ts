import type { IncomingHttpHeaders } from 'node:http';
import {
  addEndpoint,
  type Endpoint,
  HttpProblem,
  parseJsonBody,
  type Reply,
  type RequestContext,
  readRawBodies,
} from '@portico/transport';
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteHandlerMethod } from 'fastify';
import type { MaybePromise } from '../core/maybe-promise.ts';
import { refuseCrossSite } from '../http/cross-site.ts';
import { COMMON_HEADERS, MEDIA_TYPES, methodNotAllowed, NOT_FOUND, refuse } from './management-errors.ts';

/** Answers a read. Throws HttpProblem. */
export type Operation = (ctx: RequestContext) => MaybePromise<Reply>;

/** Answers a write; `body` is what its JSON holds, undefined when it is empty. Throws HttpProblem. */
export type WriteOperation = (ctx: RequestContext, body: unknown) => MaybePromise<Reply>;

/** What a path of this door answers, by method. */
export interface Operations {
  readonly get?: Operation | undefined;
  /** Type and headers of the reply to HEAD; those of GET, which then runs, when absent. */
  readonly head?: (headers: IncomingHttpHeaders) => Pick<Reply, 'type' | 'headers'>;
  readonly post?: WriteOperation | undefined;
  readonly delete?: WriteOperation | undefined;
  /** False when an operation needs Fastify's own request; default true. */
  readonly fast?: boolean;
  /** Whether something is at the path with this last parameter; otherwise every method gets 404. Default: always. */
  readonly exists?: (param: string) => boolean;
}

/** Operations by path, as the discovery page lists it: `/env`, `/env/{toMatch}`, `/health/{*path}`. */
export type Routes = Readonly<Record<string, Operations>>;

/**
 * Adds a path with what it answers. OPTIONS lists its methods, as clients look for it before they offer to write;
 * every other method gets 405 before its body is read.
 */
export function addOperations(
  scope: FastifyInstance,
  url: string,
  { get, head, post, delete: remove, fast = true, exists = () => true }: Operations,
): void {
  const methods: string[] = [];
  if (get !== undefined) {
    methods.push('GET', 'HEAD');
    const exposeHeadRoute = head === undefined;
    addEndpoint(scope, 'GET', url, { bodyLimit: 0, handle: get }, { fast, exposeHeadRoute });
  }
  if (head !== undefined) scope.head(url, headHandler(head));
  for (const [method, operation] of Object.entries({ POST: post, DELETE: remove })) {
    if (operation === undefined) continue;
    methods.push(method);
    addEndpoint(scope, method as 'POST' | 'DELETE', url, writeEndpoint(operation), { fast });
  }

  const allow = [...methods, 'OPTIONS'].join(', ');
  const refusal = methodNotAllowed(allow);
  function answerOthers(request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const [param = ''] = Object.values(request.params as Readonly<Record<string, string>>);
    if (!exists(param)) return refuse(NOT_FOUND, request, reply);
    if (request.method !== 'OPTIONS') return refuse(refusal, request, reply);
    return reply.headers(COMMON_HEADERS).header('allow', allow).send();
  }
  answerBeforeBody(
    scope,
    url,
    scope.supportedMethods.filter((method) => !methods.includes(method)),
    answerOthers,
  );
}

/** Prepares a scope for operations: errors in the door's format, bodies byte for byte. */
export function prepareScope(scope: FastifyInstance): void {
  scope.setErrorHandler(refuse);
  readRawBodies(scope);
}

/** Adds the paths of an endpoint. */
export function addRoutes(scope: FastifyInstance, routes: Routes): void {
  for (const [path, operations] of Object.entries(routes)) {
    const url = path.replace(/\{\*\w+\}/, '*').replace(/\{(\w+)\}/, ':$1');
    addOperations(scope, url, operations);
  }
}

/** Adds an unlisted route that answers before the body is read. */
export function answerBeforeBody(
  scope: FastifyInstance,
  url: string,
  method: string[],
  answer: (request: FastifyRequest, reply: FastifyReply) => FastifyReply,
): void {
  scope.route({
    method,
    url,
    config: { unlisted: true },
    exposeHeadRoute: false,
    onRequest(request, reply) {
      answer(request, reply);
    },
    handler: answer,
  });
}

function headHandler(head: NonNullable<Operations['head']>): RouteHandlerMethod {
  return (request, reply) => {
    const { type, headers } = head(request.headers);
    return reply
      .headers(headers ?? {})
      .type(type)
      .send();
  };
}

function writeEndpoint(operation: WriteOperation): Endpoint {
  return {
    bodyLimit: BODY_LIMIT,
    authorize: refuseWrite,
    handle: (ctx) => operation(ctx, parseWrite(ctx.body)),
  };
}

/** More than any operation of this door takes, in bytes. */
const BODY_LIMIT = 64 * 1024;

const NO_JSON = new HttpProblem(415, 'NO_JSON', 'Send the body as application/json');

/**
 * Refuses a write before its body is read: one from another site, and a body under none of the three media types. A
 * form is none of them, so that a page of another site cannot write in a browser without Sec-Fetch-Site either.
 */
function refuseWrite(ctx: RequestContext, bodyLength: number): void {
  refuseCrossSite(ctx);
  const { contentType } = ctx;
  if (contentType === null) {
    if (bodyLength > 0) throw NO_JSON;
    return;
  }
  const mediaType = contentType.split(';', 1)[0]?.trim().toLowerCase();
  if (!MEDIA_TYPES.some((type) => type === mediaType)) throw NO_JSON;
}

/** What a body holds: strict JSON, undefined when it is empty. Throws HttpProblem. */
function parseWrite(body: Buffer): unknown {
  return body.length === 0 ? undefined : parseJsonBody(body);
}
