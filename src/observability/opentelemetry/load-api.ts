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

/**
 * The API, if an SDK was registered before the start; nothing is loaded otherwise. `onMissing` is called where an SDK
 * is registered and Portico finds no API.
 */
export async function loadOpenTelemetry(
  onMissing: (error: unknown) => void,
): Promise<Registered | undefined> {
  const registered = Object(Reflect.get(globalThis, REGISTERED)) as {
    readonly trace?: unknown;
    readonly metrics?: unknown;
  };
  const traces = registered.trace !== undefined;
  const metrics = registered.metrics !== undefined;
  if (!traces && !metrics) return undefined;
  try {
    return { api: await import('@opentelemetry/api'), traces, metrics };
  } catch (error) {
    onMissing(error);
    return undefined;
  }
}
