import { createRequire } from 'node:module';
import { join } from 'node:path';
import type {
  BatchObservableResult,
  Context,
  Observable,
  ObservableResult,
  Span,
  SpanContext,
  SpanKind,
  SpanOptions,
  Meter as Target,
} from '@opentelemetry/api';
import type { RequestTracing } from '@portico/transport';
import { readTraceContext, type TraceContext } from '../core/trace.ts';
import type { Meter, Series } from './meters.ts';
import type { Metrics } from './metrics.ts';

/** The API of OpenTelemetry, which is a development dependency for its types. */
type OpenTelemetryApi = typeof import('@opentelemetry/api');

/** The global symbol under which every copy of the API finds the registered SDK. */
const REGISTERED = Symbol.for('opentelemetry.js.api.1');

/** The API, and what an SDK has registered with it. */
export interface Registered {
  readonly api: OpenTelemetryApi;
  readonly traces: boolean;
  readonly metrics: boolean;
}

/** Loaders of copies of the API. A globally installed Portico finds the SDK in the project's directory. */
const COPIES: readonly (() => OpenTelemetryApi | Promise<OpenTelemetryApi>)[] = [
  () => import('@opentelemetry/api'),
  () => createRequire(join(process.cwd(), 'package.json'))('@opentelemetry/api'),
];

/**
 * Returns the API if an SDK was registered before startup; loads nothing otherwise. Calls `onMissing` if an
 * SDK is registered but no matching copy of the API is found.
 */
export async function loadOpenTelemetry(
  onMissing: (error: unknown) => void,
): Promise<Registered | undefined> {
  const { trace, metrics } = Object(Reflect.get(globalThis, REGISTERED)) as {
    readonly trace?: unknown;
    readonly metrics?: unknown;
  };
  if (trace === undefined && metrics === undefined) return undefined;
  let problem: unknown;
  for (const copy of COPIES) {
    try {
      const api = await copy();
      // A copy does not see a registration with an older copy.
      const knows =
        (trace === undefined || api.trace.getTracerProvider() === trace) &&
        (metrics === undefined || api.metrics.getMeterProvider() === metrics);
      if (knows) return { api, traces: trace !== undefined, metrics: metrics !== undefined };
      problem = new Error('The SDK has registered with an older API than the one that was found');
    } catch (error) {
      problem ??= error;
    }
  }
  onMissing(problem);
  return undefined;
}

/** Runs work in a child span of the current one, which ends with the work or records its error. */
export type InSpan = <T>(name: string, attributes: Readonly<Record<string, string>>, work: () => T) => T;

/** Creates child spans of recorded spans; without a recorded span it only runs the work. */
export function childSpans(api: OpenTelemetryApi, kind: SpanKind): InSpan {
  const tracer = api.trace.getTracer(SCOPE);
  return (name, attributes, work) => {
    if (api.trace.getActiveSpan()?.isRecording() !== true) return work();
    const span = tracer.startSpan(name, { kind, attributes: { ...attributes } });
    try {
      const result = work();
      if (!(result instanceof Promise)) {
        span.end();
        return result;
      }
      result.then(
        () => span.end(),
        (error: unknown) => endWithError(api, span, error),
      );
      return result;
    } catch (error) {
      endWithError(api, span, error);
      throw error;
    }
  };
}

/** Ends a failed span with the type of the error; its message may contain secrets. */
export function endWithError(api: OpenTelemetryApi, span: Span, error: unknown): void {
  const { code, name } = Object(error) as { readonly code?: unknown; readonly name?: unknown };
  span.setAttribute('error.type', String(code ?? name ?? typeof error));
  span.setStatus({ code: api.SpanStatusCode.ERROR });
  span.end();
}

/** Timeout of the last export during a stop, in milliseconds. */
const FLUSH_TIMEOUT = 2_000;

type Observe = (result: ObservableResult) => void;

/**
 * Exports all meters of the registry to the registered SDK as observable instruments: counters and gauges
 * under their names; a timer as `.count`, `.sum`, `.max` and, if it has buckets, `.bucket` with `le`, as for
 * Prometheus.
 */
export function observeMeters(api: OpenTelemetryApi, metrics: Metrics): AsyncDisposable {
  const target = api.metrics.getMeter(SCOPE);
  const known = new Set<string>();
  const stops: (() => void)[] = [];

  function add(instrument: Observable, observe: Observe): void {
    instrument.addCallback(observe);
    stops.push(() => instrument.removeCallback(observe));
  }

  /** A meter declared later is exported from the second collection after its declaration. */
  function addNew(): void {
    for (const meter of metrics.meters()) {
      if (known.has(meter.name)) continue;
      known.add(meter.name);
      for (const [instrument, observe] of instrumentsOf(target, meter)) add(instrument, observe);
    }
  }

  addNew();
  const watch = (_: BatchObservableResult) => addNew();
  const uptime = target.createObservableGauge('portico.meters', { description: 'Number of meters' });
  add(uptime, (result) => result.observe(metrics.names().length));
  target.addBatchObservableCallback(watch, [uptime]);
  stops.push(() => target.removeBatchObservableCallback(watch, [uptime]));
  return {
    async [Symbol.asyncDispose]() {
      await flush(api);
      for (const stop of stops) stop();
    },
  };
}

/** Asks the SDK to export the last values; errors are ignored. */
async function flush(api: OpenTelemetryApi): Promise<void> {
  const provider = api.metrics.getMeterProvider() as { forceFlush?(): Promise<void> };
  const timeout = AbortSignal.timeout(FLUSH_TIMEOUT);
  const { promise, resolve } = Promise.withResolvers<void>();
  timeout.addEventListener('abort', () => resolve());
  await Promise.race([provider.forceFlush?.().catch(() => {}), promise]);
}

function instrumentsOf(target: Target, meter: Meter): readonly (readonly [Observable, Observe])[] {
  const { name, description, unit, type } = meter;
  const options = { description, ...(unit !== undefined && { unit: unit === 'seconds' ? 's' : unit }) };
  if (type === 'gauge') {
    return [[target.createObservableGauge(name, options), observer(meter, 'VALUE')]];
  }
  if (type === 'counter') {
    return [[target.createObservableCounter(name, options), observer(meter, 'COUNT')]];
  }
  const { buckets } = meter;
  return [
    [target.createObservableCounter(`${name}.count`, { description }), observer(meter, 'COUNT')],
    [target.createObservableCounter(`${name}.sum`, options), observer(meter, 'TOTAL_TIME')],
    [target.createObservableGauge(`${name}.max`, options), observer(meter, 'MAX')],
    ...(buckets === undefined
      ? []
      : ([
          [target.createObservableCounter(`${name}.bucket`, { description }), bucketObserver(meter, buckets)],
        ] as const)),
  ];
}

function observer(meter: Meter, statistic: string): Observe {
  return (result) => {
    for (const series of meter.series()) {
      const value = series.measure().find((each) => each.statistic === statistic)?.value;
      if (value !== undefined && Number.isFinite(value)) result.observe(value, attributesOf(series));
    }
  };
}

function bucketObserver(meter: Meter, buckets: readonly number[]): Observe {
  return (result) => {
    for (const series of meter.series()) {
      let total = 0;
      for (const [i, bound] of buckets.entries()) {
        total += series.bucketCounts?.[i] ?? 0;
        result.observe(total, { ...attributesOf(series), le: String(bound) });
      }
    }
  };
}

function attributesOf({ tags }: Series): Record<string, string> {
  return Object.fromEntries(tags.map(({ key, value }) => [key, value]));
}

/** Methods that may appear in the name of a span; others are arbitrary texts of clients. */
const METHODS = new Set([
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'TRACE',
  'CONNECT',
  'QUERY',
]);

/** Creates spans for requests that carry a trace or are sampled, by the conventions for HTTP servers. */
export function requestSpans(api: OpenTelemetryApi, door: string, isChosen: () => boolean): RequestTracing {
  const tracer = api.trace.getTracer(SCOPE);
  const { SERVER } = api.SpanKind;
  return {
    begin(request) {
      const { method: given, route, headers } = request;
      // Asking an SDK, which mostly declines, costs a quarter of a short request.
      if (headers.traceparent === undefined && !isChosen()) return undefined;
      const method = METHODS.has(given) ? given : '_OTHER';
      const parent =
        headers.traceparent === undefined
          ? undefined
          : readTraceContext(headers.traceparent, headers.tracestate);
      const inParent = parentContext(api, parent);
      const name = method === '_OTHER' ? 'HTTP' : method;
      const span = tracer.startSpan(
        route === undefined ? name : `${name} ${route}`,
        { kind: SERVER },
        inParent,
      );
      // Most spans are not sampled, and describing one costs as much as the rest. A sampler sees the name and
      // the kind.
      if (span.isRecording()) describe(span, method, door, request);
      return new OpenTelemetrySpan(api, span, api.trace.setSpan(inParent, span));
    },
  };
}

function describe(
  span: Span,
  method: string,
  door: string,
  request: Parameters<RequestTracing['begin']>[0],
): void {
  const { route, target, scheme, client, headers } = request;
  const query = target.indexOf('?');
  span.setAttributes({
    'http.request.method': method,
    'url.path': query === -1 ? target : target.slice(0, query),
    'url.scheme': scheme,
    'portico.door': door,
    ...(route !== undefined && { 'http.route': route }),
  });
  const [, host, port] = /^(.*?)(?::(\d+))?$/.exec(headers.host ?? '') ?? [];
  if (host) span.setAttribute('server.address', host);
  if (port !== undefined) span.setAttribute('server.port', Number(port));
  if (client !== '') span.setAttribute('client.address', client);
  const agent = headers['user-agent'];
  if (agent !== undefined) span.setAttribute('user_agent.original', agent);
}

class OpenTelemetrySpan {
  readonly #api: OpenTelemetryApi;
  readonly #span: Span;
  readonly #context: Context;

  constructor(api: OpenTelemetryApi, span: Span, context: Context) {
    this.#api = api;
    this.#span = span;
    this.#context = context;
  }

  run<T>(work: () => T): T {
    return this.#api.context.with(this.#context, work);
  }

  end(status: number): void {
    const span = this.#span;
    if (span.isRecording()) {
      if (status > 0) span.setAttribute('http.response.status_code', status);
      if (status === 0 || status >= 500) {
        span.setAttribute('error.type', status === 0 ? 'client_gone' : String(status));
        span.setStatus({ code: this.#api.SpanStatusCode.ERROR });
      }
    }
    span.end();
  }
}

/** The instrumentation scope of Portico's spans and meters. */
const SCOPE = 'portico';

/** Converts a W3C trace context to OpenTelemetry's form. */
function spanContextOf(
  { createTraceState }: OpenTelemetryApi,
  { traceId, spanId, flags, state }: TraceContext,
): SpanContext {
  const context = { traceId, spanId, traceFlags: flags, isRemote: true };
  return state === undefined ? context : { ...context, traceState: createTraceState(state) };
}

/** Converts OpenTelemetry's form to a W3C trace context. */
export function traceContextOf({ traceId, spanId, traceFlags, traceState }: SpanContext): TraceContext {
  const state = traceState?.serialize();
  return { traceId, spanId, flags: traceFlags, state: state === '' ? undefined : state };
}

/** The context in which a span with that parent starts; starts a new trace without one. */
function parentContext(api: OpenTelemetryApi, parent: TraceContext | undefined): Context {
  if (parent === undefined) return api.ROOT_CONTEXT;
  return api.trace.setSpanContext(api.ROOT_CONTEXT, spanContextOf(api, parent));
}

/**
 * Creates a function that starts a span in the trace `origin`, or with `isLinked` in a new trace with a link
 * to it. `active` is the context of the span.
 */
export function spanStarter(api: OpenTelemetryApi) {
  const tracer = api.trace.getTracer(SCOPE);
  return (
    name: string,
    options: Pick<SpanOptions, 'kind' | 'attributes'>,
    origin: TraceContext | undefined,
    isLinked: boolean,
  ) => {
    const links = origin !== undefined && isLinked ? [{ context: spanContextOf(api, origin) }] : [];
    const parent = parentContext(api, isLinked ? undefined : origin);
    const span = tracer.startSpan(name, { ...options, links }, parent);
    return { span, active: api.trace.setSpan(parent, span) };
  };
}
