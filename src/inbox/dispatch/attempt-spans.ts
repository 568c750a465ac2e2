import type { Link, Span } from '@opentelemetry/api';
import { endWithError } from '../../observability/opentelemetry/in-span.ts';
import type { OpenTelemetryApi } from '../../observability/opentelemetry/load-api.ts';
import {
  parentContext,
  SCOPE,
  spanContextOf,
  traceContextOf,
} from '../../observability/opentelemetry/span-context.ts';
import { readStoredTrace, storedTrace } from '../../observability/trace/trace-context.ts';
import type { ClaimedJob } from '../delivery.ts';
import { type TargetAbout, type TraceTarget, withTrace } from './traced-target.ts';

/** A delivery that is older begins a trace of its own, with a link: those who keep traces have closed the first. */
const MAX_AGE = 3_600_000;

/**
 * Records each attempt as a span of the trace that its delivery came with, and those that are chosen of the others; after a replay or a retry much later as a
 * span of a new trace that is linked to it. What the target does is in the context of the span.
 */
export function attemptSpans(api: OpenTelemetryApi, isChosen: () => boolean): TraceTarget {
  const tracer = api.trace.getTracer(SCOPE);

  function begin(
    job: ClaimedJob,
    about: TargetAbout,
  ): { readonly span: Span; readonly active: ReturnType<typeof parentContext> } {
    const origin = readStoredTrace(job.delivery.trace);
    const isOld = Date.now() - job.delivery.receivedAt > MAX_AGE;
    const links: Link[] = origin !== undefined && isOld ? [{ context: spanContextOf(api, origin) }] : [];
    const parent = parentContext(api, isOld ? undefined : origin);
    const kind = about.url === undefined ? api.SpanKind.CONSUMER : api.SpanKind.CLIENT;
    const attributes = { ...messageAttributes(job), ...(about.url && clientAttributes(about.url)) };
    const name = about.url === undefined ? `process ${job.delivery.event ?? ''}` : 'POST';
    const span = tracer.startSpan(name.trimEnd(), { kind, attributes, links }, parent);
    return { span, active: api.trace.setSpan(parent, span) };
  }

  return (target, about) => ({
    ...target,
    async run(job, signal, answered) {
      if (job.delivery.trace == null && !isChosen()) return target.run(job, signal, answered);
      const { span, active } = begin(job, about);
      let status = 0;
      const own = withTrace(job, storedTrace(traceContextOf(span.spanContext())));
      try {
        await api.context.with(active, () =>
          target.run(own, signal, (answer) => {
            ({ status } = answer);
            if (status > 0) span.setAttribute('http.response.status_code', status);
            answered(answer);
          }),
        );
        span.end();
      } catch (error) {
        endWithError(api, span, status >= 300 ? { code: status } : error);
        throw error;
      }
    },
  });
}

function messageAttributes({ delivery, attempt, target }: ClaimedJob) {
  return {
    'messaging.system': 'portico',
    'messaging.operation.type': 'process',
    'messaging.destination.name': target,
    'messaging.message.id': delivery.id,
    'messaging.message.body.size': delivery.body.byteLength,
    'portico.attempt': attempt,
    ...(delivery.source !== '' && { 'portico.source': delivery.source }),
  };
}

/** Without user, query and fragment, which may hold secrets. */
function clientAttributes({ origin, pathname, hostname, port, protocol }: URL) {
  return {
    'http.request.method': 'POST',
    'url.full': origin + pathname,
    'server.address': hostname,
    'server.port': Number(port || (protocol === 'https:' ? 443 : 80)),
  };
}
