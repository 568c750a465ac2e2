import type { Span, SpanKind } from '@opentelemetry/api';
import type { OpenTelemetryApi } from './load-api.ts';
import { SCOPE } from './span-context.ts';

/** Runs work as a span of the current one; `end` says what it gave, or the error that it ended with. */
export type InSpan = <T>(name: string, attributes: Readonly<Record<string, string>>, work: () => T) => T;

/** Makes spans below those that are recorded; where none is, it only runs the work. */
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

/** Ends a span that has failed. The message of an error may hold what is secret; its type does not. */
export function endWithError(api: OpenTelemetryApi, span: Span, error: unknown): void {
  const { code, name } = Object(error) as { readonly code?: unknown; readonly name?: unknown };
  span.setAttribute('error.type', String(code ?? name ?? typeof error));
  span.setStatus({ code: api.SpanStatusCode.ERROR });
  span.end();
}
