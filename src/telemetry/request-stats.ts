import { exchangeOf, type RecordedExchange, type ReplyRecorder, routePathOf } from '@portico/transport';
import type { FastifyBaseLogger, FastifyInstance, onResponseHookHandler } from 'fastify';
import { requestFields } from '../core/trace.ts';
import { LatencyHistogram, type Timer } from './meters.ts';
import type { Metrics, Tagged } from './metrics.ts';

/** The route of requests without a matching route, whose paths clients choose. */
const NO_ROUTE = 'none';
/** Bounds for the durations of a small service's requests, in seconds. */
const BUCKETS = [0.005, 0.025, 0.1, 0.5, 1, 5];
/** The console's own requests, which are not counted: a console that is open must not show itself. */
const OWN_PAGE = /\/console(?:\/api\/|\/assets\/|$)/;
/** Replies that take longer are event streams and do not count as latency, in milliseconds. */
const STREAM = 60_000;

/** Reads each finished request of a door whole; describing it costs time at every request. */
type ExchangeReader = (exchange: RecordedExchange) => void;

/**
 * The record of a door's requests: told once of each when it has finished, it counts and times it by route,
 * and tells whoever reads more of it. Nothing is allocated per request unless exchanges are read.
 */
export class RequestStats {
  /** Durations in milliseconds. */
  readonly durations = new LatencyHistogram();
  readonly #door: string;
  readonly #timer: Tagged<Timer, readonly ['door', 'uri', 'method', 'status']>;
  readonly #tail: RequestTail | undefined;
  readonly #readers: { readonly read: ExchangeReader; readonly isRead: (status: number) => boolean }[] = [];
  #replies = 0;
  #errors = 0;

  /** `tail` keeps the last requests. */
  constructor(door: string, metrics: Metrics, tail?: RequestTail) {
    this.#door = door;
    this.#tail = tail;
    this.#timer = metrics.timer('http.server.requests', {
      description: 'Requests by door, route, method and status',
      tags: ['door', 'uri', 'method', 'status'],
      buckets: BUCKETS,
    });
  }

  /** The number of replies. */
  get replies(): number {
    return this.#replies;
  }

  /** Replies with status 500 or above. */
  get errors(): number {
    return this.#errors;
  }

  /** Passes each further exchange to a reader, or only those with certain statuses. */
  read(read: ExchangeReader, isRead: (status: number) => boolean = () => true): void {
    this.#readers.push({ read, isRead });
  }

  /**
   * Records every request of an application by its route template, never by its URL, which a client chooses.
   * Call it before any route is added: each route gets a hook that knows its template, so that a request
   * costs two lookups and no string building.
   */
  listen(app: FastifyInstance): void {
    app.addHook('onRoute', (route) => {
      const { paths } = route.config ?? {};
      for (const path of paths?.values() ?? []) path.record = this.recorderOf(path.url);
      const own = this.recorderOf(route.url);
      // The fast path does not run hooks.
      if (paths === undefined) route.config = { ...route.config, record: own };
      const hook: onResponseHookHandler = (request, reply, done) => {
        const record = (paths && routePathOf(request)?.record) ?? own;
        record(request.method, reply.statusCode, reply.elapsedTime, reply);
        done();
      };
      route.onResponse = [route.onResponse ?? [], hook].flat();
    });
    const recordUnknown = this.recorderOf(NO_ROUTE);
    app.addHook('onResponse', (request, reply, done) => {
      if (request.is404) recordUnknown(request.method, reply.statusCode, reply.elapsedTime, reply);
      done();
    });
  }

  /** The recorder of a route; `uri` is its template. */
  recorderOf(uri: string): ReplyRecorder {
    const isCounted = this.#door !== 'management' || !OWN_PAGE.test(uri);
    const tail = this.#tail;
    const methods = new Map<string, (Timer | undefined)[]>();
    const count = (method: string, status: number, milliseconds: number) => {
      let byStatus = methods.get(method);
      if (byStatus === undefined) {
        byStatus = [];
        methods.set(method, byStatus);
      }
      byStatus[status] ??= this.#seriesOf(uri, method, status);
      byStatus[status].record(milliseconds / 1_000);
      this.#replies++;
      if (status >= 500) this.#errors++;
      if (milliseconds < STREAM) this.durations.record(milliseconds);
      tail?.record(this.#door, uri, method, status, milliseconds);
    };
    return (method, status, milliseconds, reply) => {
      if (isCounted) count(method, status, milliseconds);
      let exchange: RecordedExchange | undefined;
      for (const { read, isRead } of this.#readers) {
        if (!isRead(status)) continue;
        exchange ??= exchangeOf(reply);
        read(exchange);
      }
    };
  }

  #seriesOf(uri: string, method: string, status: number): Timer {
    return this.#timer.with('door', this.#door, 'uri', uri, 'method', method, 'status', String(status));
  }
}

/** Logs each request when it ends, without the query, which may contain secrets. */
export function accessLog(log: Pick<FastifyBaseLogger, 'info'>): ExchangeReader {
  return ({ id, client, method, target, status, duration, requestHeaders }) => {
    const [path] = target.split('?', 1);
    const durationMs = Math.round(duration * 10) / 10;
    const fields = requestFields({ id, headers: requestHeaders });
    log.info({ ...fields, client, method, path, status, durationMs }, 'request');
  };
}

/** Keeps the latest exchanges in a ring buffer. */
export class ExchangeLog {
  readonly #capacity: number;
  readonly #ring: RecordedExchange[] = [];
  #next = 0;

  constructor(capacity = 100) {
    this.#capacity = capacity;
  }

  record(exchange: RecordedExchange): void {
    this.#ring[this.#next] = exchange;
    this.#next = (this.#next + 1) % this.#capacity;
  }

  listen(app: FastifyInstance): void {
    app.addHook('onResponse', (_request, reply, done) => {
      this.record(exchangeOf(reply));
      done();
    });
  }

  latest(): readonly RecordedExchange[] {
    return [...this.#ring.slice(0, this.#next).reverse(), ...this.#ring.slice(this.#next).reverse()];
  }
}

/** A recorded reply. */
interface TailedRequest {
  /** Sequence number since the start. */
  readonly number: number;
  readonly door: string;
  /** The route's template, never the URL. */
  readonly route: string;
  readonly method: string;
  readonly status: number;
  /** When the reply was complete, to the second, in milliseconds since the epoch. */
  readonly endedAt: number;
  /** In milliseconds. */
  readonly duration: number;
}

/** How often the clock is read, in milliseconds: reading it costs more than recording the rest of a reply. */
const CLOCK = 1_000;

/**
 * Keeps the last replies of all doors without allocating per reply: numbers are in typed arrays, and the
 * texts are the routes' own strings. Disposing of it stops its clock, which does not keep the process alive.
 */
export class RequestTail implements Disposable {
  readonly #capacity: number;
  readonly #doors: string[];
  readonly #routes: string[];
  readonly #methods: string[];
  readonly #status: Uint16Array;
  readonly #endedAt: Float64Array;
  readonly #duration: Float32Array;
  #number = 0;
  #now = Date.now();
  readonly #clock = setInterval(() => {
    this.#now = Date.now();
  }, CLOCK).unref();

  constructor(capacity = 500) {
    this.#capacity = capacity;
    this.#doors = new Array<string>(capacity).fill('');
    this.#routes = new Array<string>(capacity).fill('');
    this.#methods = new Array<string>(capacity).fill('');
    this.#status = new Uint16Array(capacity);
    this.#endedAt = new Float64Array(capacity);
    this.#duration = new Float32Array(capacity);
  }

  record(door: string, route: string, method: string, status: number, duration: number): void {
    const at = this.#number++ % this.#capacity;
    this.#doors[at] = door;
    this.#routes[at] = route;
    this.#methods[at] = method;
    this.#status[at] = status;
    this.#endedAt[at] = this.#now;
    this.#duration[at] = duration;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#clock);
  }

  /** The latest first. */
  latest(): readonly TailedRequest[] {
    const kept = Math.min(this.#number, this.#capacity);
    return Array.from({ length: kept }, (_, i) => this.#at(this.#number - i));
  }

  #at(number: number): TailedRequest {
    const at = (number - 1) % this.#capacity;
    return {
      number,
      door: this.#doors[at] ?? '',
      route: this.#routes[at] ?? '',
      method: this.#methods[at] ?? '',
      status: this.#status[at] ?? 0,
      endedAt: this.#endedAt[at] ?? 0,
      duration: Math.round((this.#duration[at] ?? 0) * 1_000) / 1_000,
    };
  }
}
