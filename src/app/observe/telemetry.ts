import type { Door } from '../../config/options/door.ts';
import type { Database } from '../../database/database.ts';
import { databaseAt } from '../../database/database-url.ts';
import { tracedDatabase } from '../../database/traced/traced-database.ts';
import { attemptSpans } from '../../inbox/dispatch/attempt-spans.ts';
import type { TraceTarget } from '../../inbox/dispatch/traced-target.ts';
import type { Metrics } from '../../observability/metrics/metrics.ts';
import { childSpans } from '../../observability/opentelemetry/in-span.ts';
import type { Registered } from '../../observability/opentelemetry/load-api.ts';
import { observeMeters } from '../../observability/opentelemetry/observe-meters.ts';
import { requestSpans } from '../../observability/opentelemetry/request-spans.ts';
import { traceContextOf } from '../../observability/opentelemetry/span-context.ts';
import type { RequestTracing } from '../../observability/trace/request-tracing.ts';
import { storedTrace } from '../../observability/trace/trace-context.ts';
import { traceOfHeaders } from '../../observability/trace/trace-fields.ts';

/** What the parts of the service record as spans, where an SDK for traces is registered. */
export interface Tracing {
  requests(door: Door): RequestTracing;
  database(database: Database, url: string): Database;
  readonly traceTarget: TraceTarget;
  readonly traceOf: typeof traceOfHeaders;
}

/** Spans by OpenTelemetry, of one in so many of what comes without a trace. */
export function openTracing({ api, traces }: Registered, oneIn: number): Tracing | undefined {
  if (!traces) return undefined;
  const isChosen = () => oneIn === 1 || Math.random() * oneIn < 1;
  return {
    requests: (door) => requestSpans(api, door, isChosen),
    database(database, url) {
      const system = databaseAt(url).engine === 'sqlite' ? 'sqlite' : 'postgresql';
      return tracedDatabase(database, system, childSpans(api, api.SpanKind.CLIENT));
    },
    traceTarget: attemptSpans(api, isChosen),
    // The span of the request, which the SDK may have begun without a parent.
    traceOf(exchange) {
      const span = api.trace.getActiveSpan();
      return span === undefined ? traceOfHeaders(exchange) : storedTrace(traceContextOf(span.spanContext()));
    },
  };
}

/** Shows the meters to OpenTelemetry, where an SDK for metrics is registered. */
export function exportMeters({ api, metrics }: Registered, meters: Metrics): AsyncDisposable | undefined {
  return metrics ? observeMeters(api, meters) : undefined;
}
