import type {
  BatchObservableResult,
  Observable,
  ObservableResult,
  Meter as Target,
} from '@opentelemetry/api';
import type { Meter, Series } from '../metrics/meter.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { OpenTelemetryApi } from './load-api.ts';
import { SCOPE } from './span-context.ts';

/** Time for the last export in a stop, in milliseconds. */
const FLUSH_TIMEOUT = 2_000;

type Observe = (result: ObservableResult) => void;

/**
 * Shows all meters of the registry to the registered SDK as observable instruments: a counter and a gauge by their own
 * names, a timer as `.count`, `.sum`, `.max` and, where it has buckets, `.bucket` with `le`, as Prometheus gets them.
 */
export function observeMeters(api: OpenTelemetryApi, metrics: Metrics): AsyncDisposable {
  const target = api.metrics.getMeter(SCOPE);
  const known = new Set<string>();
  const stops: (() => void)[] = [];

  function add(instrument: Observable, observe: Observe): void {
    instrument.addCallback(observe);
    stops.push(() => instrument.removeCallback(observe));
  }

  /** A meter that is declared later is in the collection after the next one. */
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

/** Has the SDK export the last values, while there are any; it may take a moment, and may fail. */
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
