import type { Context, Span } from '@opentelemetry/api';
import type { RequestSpan, RequestTracing, TracedRequest } from '../trace/request-tracing.ts';
import { readTraceContext } from '../trace/trace-context.ts';
import type { OpenTelemetryApi } from './load-api.ts';
import { parentContext, SCOPE } from './span-context.ts';

/** Methods that a span may be named by; a client chooses the others. */
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

/** Spans of a door's requests that come with a trace, or are chosen, with the names of the semantic conventions for HTTP servers. */
export function requestSpans(api: OpenTelemetryApi, door: string, isChosen: () => boolean): RequestTracing {
  const tracer = api.trace.getTracer(SCOPE);
  const { SERVER } = api.SpanKind;
  return {
    begin(request) {
      const { method: given, route, headers } = request;
      // To ask an SDK, which mostly refuses, costs a quarter of a short request.
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
      // Most are not sampled: to describe them would cost as much as all else. A sampler sees the name and the kind.
      if (span.isRecording()) describe(span, method, door, request);
      return new OpenTelemetrySpan(api, span, api.trace.setSpan(inParent, span));
    },
  };
}

function describe(span: Span, method: string, door: string, request: TracedRequest): void {
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

class OpenTelemetrySpan implements RequestSpan {
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
