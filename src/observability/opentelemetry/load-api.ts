import { createRequire } from 'node:module';
import { join } from 'node:path';

/** The API of OpenTelemetry; the types are there for those who build Portico. */
export type OpenTelemetryApi = typeof import('@opentelemetry/api');

/** Where every copy of the API finds what was registered. */
const REGISTERED = Symbol.for('opentelemetry.js.api.1');

/** What an SDK has registered. */
export interface Registered {
  readonly api: OpenTelemetryApi;
  readonly traces: boolean;
  readonly metrics: boolean;
}

/** The places of copies of the API. A program that is installed for all users has its SDK in the folder of its project. */
const COPIES: readonly (() => OpenTelemetryApi | Promise<OpenTelemetryApi>)[] = [
  () => import('@opentelemetry/api'),
  () => createRequire(join(process.cwd(), 'package.json'))('@opentelemetry/api'),
];

/**
 * The API, if an SDK was registered before the start; nothing is loaded otherwise. `onMissing` is called where an SDK
 * is registered and Portico finds no API that knows it.
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
      // A copy does not see what an older one has registered.
      const knows =
        (trace === undefined || api.trace.getTracerProvider() === trace) &&
        (metrics === undefined || api.metrics.getMeterProvider() === metrics);
      if (knows) return { api, traces: trace !== undefined, metrics: metrics !== undefined };
      problem = new Error('The SDK has registered with an older API than the one that is found');
    } catch (error) {
      problem ??= error;
    }
  }
  onMissing(problem);
  return undefined;
}
