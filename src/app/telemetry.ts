import type { RequestTracing } from '@portico/transport';
import type { DoorName } from '../config/options/options.ts';
import { storedTrace, traceOfHeaders } from '../core/trace.ts';
import { attemptSpans, type TraceTarget } from '../inbox/dispatch/attempt.ts';
import { type Database, databaseAt } from '../sql/database.ts';
import { tracedDatabase } from '../sql/open.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import {
  childSpans,
  observeMeters,
  type Registered,
  requestSpans,
  traceContextOf,
} from '../telemetry/opentelemetry.ts';

/** Records the service's spans if a tracing SDK is registered. */
interface Tracing {
  requests(door: DoorName): RequestTracing;
  database(database: Database, url: string): Database;
  readonly traceTarget: TraceTarget;
  readonly traceOf: typeof traceOfHeaders;
}

/** Spans in OpenTelemetry. Of work that arrives without a trace, one in `oneIn` is recorded. */
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
    // Prefers the span of the request, which the SDK may have started without a parent.
    traceOf(ctx) {
      const span = api.trace.getActiveSpan();
      return span === undefined ? traceOfHeaders(ctx) : storedTrace(traceContextOf(span.spanContext()));
    },
  };
}

/** Exports the meters to OpenTelemetry if a metrics SDK is registered. */
export function exportMeters({ api, metrics }: Registered, meters: Metrics): AsyncDisposable | undefined {
  return metrics ? observeMeters(api, meters) : undefined;
}
