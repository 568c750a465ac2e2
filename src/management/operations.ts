import type { IncomingHttpHeaders } from 'node:http';
import {
  addEndpoint,
  type Endpoint,
  HttpProblem,
  NO_PIECES,
  parseJsonBody,
  type Reply,
  type RequestContext,
  readRawBodies,
} from '@portico/transport';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { refuseCrossSite } from '../access/cors.ts';
import type { MaybePromise } from '../core/scheduler.ts';

import { COMMON_HEADERS, MEDIA_TYPES, methodNotAllowed, NOT_FOUND, refuse } from './management-errors.ts';
import type { Access } from './masking.ts';

/** A management endpoint: its id, and its routes below the base path. */
export interface ManagementEndpoint {
  readonly id: string;
  /** A line of plain text for the page that browsers get. */
  readonly about: string;
  /** Access unless the configuration sets one. Default: unrestricted. */
  readonly ownAccess?: Access;
  /** Called if the endpoint is exposed, with the scope of the base path. */
  routes(scope: FastifyInstance): Routes;
}

/** Answers a read. Throws HttpProblem. */
export type Operation = (ctx: RequestContext) => MaybePromise<Reply>;

/** Answers a write; `body` is its parsed JSON, undefined if it is empty. Throws HttpProblem. */
export type WriteOperation = (ctx: RequestContext, body: unknown) => MaybePromise<Reply>;

/** The operations of a path, by method. */
export interface Operations {
  readonly get?: Operation | undefined;
  /** Type and headers of the reply to HEAD. Default: those of GET, which then runs. */
  readonly head?: (headers: IncomingHttpHeaders) => Pick<Reply, 'type' | 'headers'>;
  readonly post?: WriteOperation | undefined;
  readonly delete?: WriteOperation | undefined;
  /** False if an operation needs Fastify's own request or sends events. Default: true. */
  readonly fast?: boolean;
  /** Whether the path exists with this last parameter; if not, every method gets 404. Default: always. */
  readonly exists?: (param: string) => boolean;
}

/** Operations by path, as the discovery page lists it: `/env`, `/env/{toMatch}`, `/health/{*path}`. */
export type Routes = Readonly<Record<string, Operations>>;

/** Adds a path. OPTIONS lists its methods; every other method gets 405 before its body is read. */
export function addOperations(
  scope: FastifyInstance,
  url: string,
  { get, head, post, delete: remove, fast = true, exists = () => true }: Operations,
): void {
  const methods: string[] = [];
  if (get !== undefined) {
    methods.push('GET', 'HEAD');
    addEndpoint(scope, 'GET', url, { bodyLimit: 0, handle: withHead(get, head) }, { fast });
  }
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

/** Prepares a scope for operations: errors in the door's format, bodies as raw bytes. */
export function prepareScope(scope: FastifyInstance): void {
  scope.setErrorHandler(refuse);
  readRawBodies(scope);
}

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

function withHead(get: Operation, head: Operations['head']): Operation {
  if (head === undefined) return get;
  return (ctx) => (ctx.method === 'HEAD' ? { status: 200, ...head(ctx.headers), body: NO_PIECES } : get(ctx));
}

function writeEndpoint(operation: WriteOperation): Endpoint {
  return {
    bodyLimit: BODY_LIMIT,
    authorize: refuseWrite,
    handle: (ctx) => operation(ctx, parseWrite(ctx.body)),
  };
}

/** Maximum size of a body in bytes; every operation takes less. */
const BODY_LIMIT = 64 * 1024;

const NO_JSON = new HttpProblem(415, 'NO_JSON', 'Send the body as application/json');

/**
 * Refuses a write before its body is read if it comes from another site, or if its body has none of the three
 * media types. Forms have none of them, so a page of another site cannot write even in a browser without
 * Sec-Fetch-Site.
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

function parseWrite(body: Buffer): unknown {
  return body.length === 0 ? undefined : parseJsonBody(body);
}
