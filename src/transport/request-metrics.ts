import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance, onResponseHookHandler } from 'fastify';
import { type RequestTail, Traffic } from '../telemetry/history.ts';
import type { Timer } from '../telemetry/meters.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { type TraceFields, traceFields } from '../telemetry/trace.ts';

/** The route of every path that there is none for: a client chooses those. */
const NO_ROUTE = 'none';
/** What requests of a small service take, and what their users notice, in seconds. */
const BUCKETS = [0.005, 0.025, 0.1, 0.5, 1, 5];

/** Whoever looks at the last requests would only see that. */
const OWN_PAGE = /\/console(?:\/api\/|\/assets\/|$)/;

/** Called for each reply with the method, the status and how long it took in milliseconds. */
export type ReplyRecorder = (method: string, status: number, milliseconds: number) => void;

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Times the replies of the route. */
    record?: ReplyRecorder;
  }
}

/**
 * Times every request of a door by its route template, never by its URL, which a client chooses.
 * Call it before any route is added: each gets a hook of its own, which knows its template, so that a
 * request costs two look-ups and builds nothing. `tail` keeps the last ones. Returns the traffic of the whole door.
 */
export function timeRequests(
  app: FastifyInstance,
  door: string,
  metrics: Metrics,
  tail?: RequestTail,
): Traffic {
  const traffic = new Traffic();
  const timer = metrics.timer('http.server.requests', {
    description: 'Requests by door, route, method and status',
    tags: ['door', 'uri', 'method', 'status'],
    buckets: BUCKETS,
  });

  function recorder(uri: string): ReplyRecorder {
    const kept = OWN_PAGE.test(uri) ? undefined : tail;
    const methods = new Map<string, (Timer | undefined)[]>();
    return (method, status, milliseconds) => {
      let byStatus = methods.get(method);
      if (byStatus === undefined) {
        byStatus = [];
        methods.set(method, byStatus);
      }
      let series = byStatus[status];
      if (series === undefined) {
        series = timer.with('door', door, 'uri', uri, 'method', method, 'status', String(status));
        byStatus[status] = series;
      }
      series.record(milliseconds / 1_000);
      traffic.record(status, milliseconds);
      kept?.record(door, uri, method, status, milliseconds);
    };
  }

  app.addHook('onRoute', (route) => {
    const record = recorder(route.url);
    // The fast path calls no hook.
    route.config = { ...route.config, record };
    const hook: onResponseHookHandler = (request, reply, done) => {
      record(request.method, reply.statusCode, reply.elapsedTime);
      done();
    };
    route.onResponse = [route.onResponse ?? [], hook].flat();
  });

  const recordUnknown = recorder(NO_ROUTE);
  app.addHook('onResponse', (request, reply, done) => {
    if (request.is404) recordUnknown(request.method, reply.statusCode, reply.elapsedTime);
    done();
  });
  return traffic;
}

/** A request that was refused for who sent it, or how often. */
interface RefusedRequest {
  readonly id: string;
  /** The client's address; empty on a Unix socket. */
  readonly client: string;
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly headers: Readonly<IncomingHttpHeaders>;
  readonly status: number;
  /** The name of the token or user whose credentials are good; undefined for nobody. */
  readonly caller: string | undefined;
  /** The code of the refusal. */
  readonly code: string;
}

/** Called for each of them, just before its reply is sent. */
export type OnRefused = (refused: RefusedRequest) => void;

/** Whether a reply says that its client may not, or not now. */
export function isAudited(status: number): boolean {
  return status === 401 || status === 403 || status === 429;
}

/** A request that log entries are about. */
interface LoggedRequest {
  readonly id: string;
  readonly headers: Readonly<Record<string, unknown>>;
}

/** The fields by which log entries name a request, and the trace that it came with. */
export function requestFields({ id, headers }: LoggedRequest): TraceFields & { readonly reqId: string } {
  return { reqId: id, ...traceFields(headers) };
}

/** A request as its span describes it. */
export interface TracedRequest {
  readonly method: string;
  /** The template of its route; undefined where there is none, or none is known yet. */
  readonly route: string | undefined;
  /** Path and query. */
  readonly target: string;
  readonly scheme: 'http' | 'https';
  /** The client's address; empty on a Unix socket. */
  readonly client: string;
  readonly headers: Readonly<IncomingHttpHeaders>;
}

/** The span of a request. */
export interface RequestSpan {
  /** Runs what belongs to the request. */
  run<T>(work: () => T): T;
  /** The reply is sent, or the client is gone: then the status is 0. */
  end(status: number): void;
}

/** Records requests as spans. */
export interface RequestTracing {
  /** Undefined for a request that is not recorded. */
  begin(request: TracedRequest): RequestSpan | undefined;
}
