import {
  addEndpoint,
  addFields,
  bodyBudgetOf,
  dropPieces,
  EventStreams,
  FastifyExchange,
  isPieces,
  readRawBodies,
  replyBudgetOf,
  send,
  sendProblem,
} from '@portico/transport';
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { addPreflights, type CorsOptions, corsPolicy } from '../access/cors.ts';
import type { ApiGate } from '../access/gate.ts';
import { guardHook, pluginGate } from '../access/guarded.ts';
import type { ApiOptions } from '../access/open-gate.ts';
import { type MaybePromise, whenReady } from '../core/maybe-promise.ts';
import type { UserEventFeed } from '../relations/events.ts';
import type { DatabaseUserStore } from '../relations/user-stores.ts';
import { asksForChanges, CHANGES_HEADERS, streamChanges } from './change-feed.ts';
import { askedExport } from './export-endpoint.ts';
import { allowedOf, JSON_TYPE, json, methodNotAllowed, NO_ROUTE, restErrors } from './rest-errors.ts';
import { userEndpoints } from './users.ts';
import { listValidators, validatorHeaders } from './validators.ts';

/** The options of the REST door. */
export interface RestOptions {
  readonly users: DatabaseUserStore;
  /** Largest body in bytes; default 64 KiB. */
  readonly bodyLimit?: number;
  /** Whether updates and deletions need If-Match; default false. */
  readonly requireIfMatch?: boolean;
  /** How long the outcome of a create with an Idempotency-Key is kept, in hours; default 24. */
  readonly idempotencyHours?: number;
  /** Largest import in bytes; default 4 GiB. */
  readonly maxImportBytes?: number;
  /** What is done to the users; without it GET /users is no event stream. */
  readonly feed?: UserEventFeed | undefined;
  /** Maximum event streams at the same time; default 1,000. */
  readonly maxStreams?: number;
  /** Which operations need credentials, and which there are; default none. */
  readonly api?: ApiOptions | ApiGate | undefined;
  /** Which pages of other origins may use the door; default none. */
  readonly cors?: CorsOptions | undefined;
}

const DEFAULT_MAX_IMPORT = 4 * 1024 ** 3;

/** The REST door (CONTRACT.md#rest-routes) as a Fastify plugin. */
export const rest: FastifyPluginAsync<RestOptions> = async (
  app,
  {
    users,
    bodyLimit = 64 * 1024,
    requireIfMatch = false,
    idempotencyHours = 24,
    maxImportBytes = DEFAULT_MAX_IMPORT,
    feed,
    maxStreams = 1_000,
    api,
    cors: pages,
  },
) => {
  const gate = await pluginGate(app, api);
  const cors = corsPolicy(pages);
  const bodyBudget = bodyBudgetOf(app);
  const { list, read, create, update, remove } = userEndpoints({
    users,
    bodyLimit,
    prefix: app.prefix,
    requireIfMatch,
    idempotencyHours,
    maxImportBytes,
    bodyBudget,
    gate,
    cors,
  });
  const admitHead = guardHook({ gate, cors }, (each, exchange) => each.admit(exchange, 'read'));
  const streams = new EventStreams(replyBudgetOf(app));
  app.addHook('preClose', (done) => {
    streams.end();
    done();
  });
  const changes = feed && { streams: streamChanges({ feed, streams, maxStreams, gate, cors }) };
  readRawBodies(app, bodyBudget);
  app.setNotFoundHandler(notFound);
  addPreflights(app, cors);
  app.setErrorHandler((error, request, reply) =>
    request.is404 ? notFound(request, reply) : sendProblem(restErrors, error, request, reply),
  );

  // An empty second segment is none.
  for (const slash of ['', '/']) {
    addEndpoint(app, 'GET', `/users${slash}`, list, { exposeHeadRoute: false, ...changes });
    app.head(`/users${slash}`, { onRequest: admitHead }, headOfList);
    addEndpoint(app, 'POST', `/users${slash}`, create);
    addEndpoint(app, 'GET', `/users/:id${slash}`, read);
    addEndpoint(app, 'PUT', `/update/:id${slash}`, update);
    addEndpoint(app, 'DELETE', `/delete/:id${slash}`, remove);
  }

  /** The length of a whole list is not known before it is sent, so HEAD tells none. */
  function headOfList(request: FastifyRequest, reply: FastifyReply): MaybePromise<FastifyReply> {
    if (feed !== undefined && asksForChanges(request)) return addFields(reply, CHANGES_HEADERS).send();
    const isPlain = Object.keys(request.query as object).length === 0 && askedExport(request) === undefined;
    if (isPlain) {
      return whenReady(users.state(), (state) =>
        addFields(reply, validatorHeaders(listValidators(state)))
          .type(JSON_TYPE)
          .send(),
      );
    }
    const exchange = new FastifyExchange(request, reply, undefined);
    return whenReady(list.handle(exchange), (answer) => {
      if (!isPieces(answer.body)) return send(reply, answer);
      dropPieces(answer.body);
      return addFields(reply, answer.headers ?? {})
        .type(answer.type)
        .send();
    });
  }

  function notFound(request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const allow = allowedOf(request.url.slice(app.prefix.length));
    if (cors !== undefined) addFields(reply, cors.fieldsFor(request.headers.origin));
    if (allow !== undefined && request.method === 'OPTIONS') return send(reply, json('', 200, { allow }));
    return sendProblem(restErrors, allow === undefined ? NO_ROUTE : methodNotAllowed(allow), request, reply);
  }
};
