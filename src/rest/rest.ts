import {
  addEndpoint,
  addFields,
  bodyBudgetOf,
  dropPieces,
  EVENT_STREAM_HEADERS,
  type EventFormat,
  EventStreams,
  FastifyRequestContext,
  HttpProblem,
  isPieces,
  prefersEventStream,
  readRawBodies,
  replyBudgetOf,
  requestContextOf,
  send,
  sendProblem,
} from '@portico/transport';
import type { FastifyPluginAsync, FastifyReply, FastifyRequest, preHandlerHookHandler } from 'fastify';
import {
  addPreflights,
  type CorsOptions,
  type CorsPolicy,
  corsPolicy,
  refuseFromOtherSite,
} from '../access/cors.ts';
import { guardHook, pluginPolicy, whileValid } from '../access/guarded.ts';
import type { ApiOptions } from '../access/open-policy.ts';
import type { AccessPolicy } from '../access/policy.ts';
import { type MaybePromise, whenReady } from '../core/maybe-promise.ts';
import { quote } from '../core/text.ts';
import {
  type EventPosition,
  EventsGoneError,
  type UserEvent,
  type UserEventFeed,
} from '../relations/events.ts';
import type { DatabaseUserStore } from '../relations/user-stores.ts';
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
  /** The changes of users; without it GET /users offers no event stream. */
  readonly feed?: UserEventFeed | undefined;
  /** Maximum concurrent event streams; default 1,000. */
  readonly maxStreams?: number;
  /** Access policy or its options: which operations need credentials; default none. */
  readonly api?: ApiOptions | AccessPolicy | undefined;
  /** Pages of other origins that may use the door; default none. */
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
  const policy = await pluginPolicy(app, api);
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
    policy,
    cors,
  });
  const authorizeHead = guardHook({ policy, cors }, (each, ctx) => each.authorize(ctx, 'read'));
  const streams = new EventStreams(replyBudgetOf(app));
  app.addHook('preClose', (done) => {
    streams.end();
    done();
  });
  const changes = feed && { streams: streamChanges({ feed, streams, maxStreams, policy, cors }) };
  readRawBodies(app, bodyBudget);
  app.setNotFoundHandler(notFound);
  addPreflights(app, cors);
  app.setErrorHandler((error, request, reply) =>
    request.is404 ? notFound(request, reply) : sendProblem(restErrors, error, request, reply),
  );

  // A trailing slash makes no difference.
  for (const slash of ['', '/']) {
    addEndpoint(app, 'GET', `/users${slash}`, list, { exposeHeadRoute: false, ...changes });
    app.head(`/users${slash}`, { onRequest: authorizeHead }, headOfList);
    addEndpoint(app, 'POST', `/users${slash}`, create);
    addEndpoint(app, 'GET', `/users/:id${slash}`, read);
    addEndpoint(app, 'PUT', `/update/:id${slash}`, update);
    addEndpoint(app, 'DELETE', `/delete/:id${slash}`, remove);
  }

  /** HEAD sends no Content-Length, since the length of a whole list is unknown before it is sent. */
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
    const ctx = new FastifyRequestContext(request, reply, undefined);
    return whenReady(list.handle(ctx), (answer) => {
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

/** Time after which a client reconnects, in milliseconds. */
const RETRY = 2_000;
/** The query parameter with the last event, for a new EventSource, which cannot set Last-Event-ID. */
const PARAMETER = 'lastEventId';

/** The header fields of the stream. */
const CHANGES_HEADERS = { ...EVENT_STREAM_HEADERS, vary: 'accept' };

interface ChangeFeedOptions {
  readonly feed: UserEventFeed;
  readonly streams: EventStreams;
  /** Maximum concurrent streams. */
  readonly maxStreams: number;
  /**
   * The policy that authorized the requests; a stream ends when its caller's credentials expire or are
   * revoked.
   */
  readonly policy: AccessPolicy | undefined;
  /** Decides which other origins' pages may follow the changes; undefined if none may. */
  readonly cors: CorsPolicy | undefined;
}

/** Whether a request for the list asks for its changes instead. */
function asksForChanges({ headers }: FastifyRequest): boolean {
  return prefersEventStream(headers.accept, JSON_TYPE);
}

/** GET /users as an event stream: changes of users from now on, or after the event that the client names. */
function streamChanges({
  feed,
  streams,
  maxStreams,
  policy,
  cors,
}: ChangeFeedOptions): preHandlerHookHandler {
  let open = 0;
  return (request, reply, done) => {
    if (!asksForChanges(request)) return done();
    stream(request, reply).catch(done);
  };

  async function stream(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    refuseFromOtherSite('Event streams', request, cors);
    const from = lastEvent(request);
    if (open >= maxStreams) throw TOO_MANY_STREAMS;
    open++;
    try {
      const events = await feed.follow(from).catch((error: unknown) => {
        throw error instanceof EventsGoneError ? new HttpProblem(410, error.code, error.message) : error;
      });
      addFields(reply, CHANGES_HEADERS);
      const allowed = whileValid(events, policy, requestContextOf(request));
      await streams.send(reply, allowed, formatFrom(events.start));
    } finally {
      open--;
    }
  }
}

const TOO_MANY_STREAMS = new HttpProblem(503, 'TOO_MANY_STREAMS', 'Too many clients follow the users', {
  headers: { 'retry-after': '5' },
});

/**
 * The format of a stream that starts after an event. It sends the event's id first, so the client can resume
 * even if it receives no event.
 */
function formatFrom(start: EventPosition): EventFormat<readonly UserEvent[]> {
  return {
    waits: true,
    begin: `retry: ${RETRY}\nid: ${idOf(start)}\n\n`,
    text: (events) => events.map(textOf).join(''),
    // Spreads the reconnections of a stopping process's clients over time.
    end: () => `retry: ${Math.round(RETRY * (0.5 + Math.random()))}\n\n`,
  };
}

function textOf(event: UserEvent): string {
  return `event: user.${event.type}\nid: ${idOf(event)}\ndata: ${event.json}\n\n`;
}

function idOf({ position, at }: EventPosition): string {
  return `${position}.${at}`;
}

/** The last event that the client received; undefined if it names none. Throws HttpProblem. */
function lastEvent({ headers, query }: FastifyRequest): EventPosition | undefined {
  const parameters = query as Readonly<Record<string, unknown>>;
  for (const name of Object.keys(parameters)) {
    if (name === PARAMETER) continue;
    const message = `An event stream does not accept the parameter ${quote(name)}, only ${PARAMETER}`;
    throw new HttpProblem(400, 'UNKNOWN_PARAMETER', message);
  }
  // A reconnecting client sends the header, and still the parameter of its first request.
  const id = headers['last-event-id'] ?? parameters[PARAMETER] ?? '';
  if (id === '') return undefined;
  const [, position, at] = /^(\d{1,16})\.(\d{1,16})$/.exec(String(id)) ?? [];
  if (position === undefined) {
    throw new HttpProblem(400, 'INVALID_EVENT_ID', 'Last-Event-ID takes the id of an event of this list');
  }
  return { position: Number(position), at: Number(at) };
}
