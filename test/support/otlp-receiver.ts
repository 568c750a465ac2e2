import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

/** A span as OTLP has it, with its attributes by name. */
export interface ReceivedSpan {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly service: unknown;
  /** 2 for an error. */
  readonly status: { readonly code: number };
}

type Scoped<K extends string, T> = { readonly [key in K]?: readonly T[] };
type SentSpan = Omit<ReceivedSpan, 'attributes' | 'service'> & { readonly attributes?: readonly Attribute[] };

/** Receives traces and metrics by OTLP over HTTP, as JSON. */
export async function startOtlpReceiver() {
  const spans: ReceivedSpan[] = [];
  const metrics = new Set<string>();
  const server = createServer(async (request, response) => {
    const sent = JSON.parse(await text(request));
    for (const { resource, scopeSpans } of sent.resourceSpans ?? []) {
      const service = valuesOf(resource?.attributes)['service.name'];
      for (const { spans: some = [] } of scopeSpans as readonly Scoped<'spans', SentSpan>[]) {
        for (const span of some) {
          const { attributes, links = [], parentSpanId } = span;
          const parent = parentSpanId === '' ? undefined : parentSpanId;
          spans.push({ ...span, parentSpanId: parent, links, attributes: valuesOf(attributes), service });
        }
      }
    }
    for (const { scopeMetrics } of sent.resourceMetrics ?? []) {
      for (const { metrics: some = [] } of scopeMetrics as readonly Scoped<'metrics', { name: string }>[]) {
        for (const { name } of some) metrics.add(name);
      }
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans: spans as readonly ReceivedSpan[],
    metrics: metrics as ReadonlySet<string>,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

function valuesOf(attributes: readonly Attribute[] = []): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
