import type { ReplyRecorder } from '@portico/transport';
import type { FastifyInstance, onResponseHookHandler } from 'fastify';
import { type RequestTail, Traffic } from './history.ts';
import type { Timer } from './meters.ts';
import type { Metrics } from './metrics.ts';

/** The route of requests without a matching route, whose paths clients choose. */
const NO_ROUTE = 'none';
/** Bounds for the durations of a small service's requests, in seconds. */
const BUCKETS = [0.005, 0.025, 0.1, 0.5, 1, 5];

/** The console's own requests, which would crowd out the others in its list of last requests. */
const OWN_PAGE = /\/console(?:\/api\/|\/assets\/|$)/;

/**
 * Times every request of a door by its route template, never by its URL, which a client chooses. Call it
 * before any route is added: each route gets a hook that knows its template, so that a request costs two
 * lookups and no string building. `tail` keeps the last requests. Returns the traffic of the door.
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
    // The fast path does not run hooks.
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
