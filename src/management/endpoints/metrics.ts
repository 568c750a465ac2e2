import { HttpProblem, type RequestContext } from '@portico/transport';
import type { Meter, Series, Statistic, Tag } from '../../telemetry/meters.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { jsonReply, jsonTextReply } from '../management-errors.ts';
import type { ManagementEndpoint, Operation } from '../operations.ts';

/** The metrics endpoint: all meters by name, and the measurements of each (CONTRACT.md#management-bodies). */
export function metricsEndpoint(metrics: Metrics): ManagementEndpoint {
  return {
    id: 'metrics',
    about: 'The names of all meters, and the measurements of each.',
    routes: () => ({
      '/metrics': { get: listNames(metrics) },
      '/metrics/{requiredMetricName}': {
        get(ctx) {
          const tags = readTags(ctx.query);
          const meter = metrics.meter(ctx.param);
          const described = meter === undefined ? undefined : describeMetric(meter, tags);
          if (described === undefined) throw NO_METER;
          return jsonReply(ctx, described);
        },
      },
    }),
  };
}

const NO_METER = new HttpProblem(404, 'NO_METER', 'There is no such meter, or none with these tags');
const WRONG_TAG = new HttpProblem(400, 'WRONG_TAG', 'Each tag parameter must be in the form key:value');

function listNames(metrics: Metrics): Operation {
  let names: readonly string[] | undefined;
  let body = '';
  return (ctx) => {
    const current = metrics.names();
    if (current !== names) {
      names = current;
      body = JSON.stringify({ names });
    }
    return jsonTextReply(ctx, body);
  };
}

/** The `tag` parameters; empty ones are ignored. Throws HttpProblem for one that is not `key:value`. */
function readTags(query: RequestContext['query']): readonly Tag[] {
  const { tag: given = [] } = query as { readonly tag?: string | readonly string[] };
  const texts = [given].flat().filter((text) => text !== '');
  if (!texts.every((text) => text.includes(':'))) throw WRONG_TAG;
  return texts.map((text) => {
    const colon = text.indexOf(':');
    return { key: text.slice(0, colon), value: text.slice(colon + 1) };
  });
}

/** The statistics of a meter without series. */
const NOTHING: Readonly<Record<Meter['type'], readonly Statistic[]>> = {
  counter: ['COUNT'],
  gauge: [],
  timer: ['COUNT', 'TOTAL_TIME', 'MAX'],
};

/**
 * A meter as the metrics endpoint shows it, merged over the series that have all of `tags`: the largest
 * maximum, and the sum of every other statistic. Other tags are listed with their values. Undefined if no
 * series has these tags; never undefined without tags.
 */
export function describeMetric(meter: Meter, tags: readonly Tag[]) {
  const matching = Array.from(meter.series()).filter((series) => tags.every((tag) => hasTag(series, tag)));
  if (matching.length === 0 && tags.length > 0) return undefined;
  const { name, description, unit, type } = meter;
  const merged = matching.length > 0 ? merge(matching) : new Map(NOTHING[type].map((each) => [each, 0]));
  return {
    name,
    description,
    baseUnit: unit,
    measurements: Array.from(merged, ([statistic, value]) => ({
      statistic,
      // JSON has no NaN or Infinity; Actuator writes their names.
      value: Number.isFinite(value) ? value : String(value),
    })),
    availableTags: openTags(matching, new Set(tags.map(({ key }) => key))),
  };
}

function hasTag(series: Series, { key, value }: Tag): boolean {
  return series.tags.some((tag) => tag.key === key && tag.value === value);
}

function merge(matching: readonly Series[]): ReadonlyMap<Statistic, number> {
  const merged = new Map<Statistic, number>();
  for (const series of matching) {
    for (const { statistic, value } of series.measure()) {
      const before = merged.get(statistic);
      if (before === undefined) merged.set(statistic, value);
      else merged.set(statistic, statistic === 'MAX' ? Math.max(before, value) : before + value);
    }
  }
  return merged;
}

function openTags(matching: readonly Series[], given: ReadonlySet<string>) {
  const open = matching.flatMap(({ tags }) => tags).filter(({ key }) => !given.has(key));
  return Array.from(
    Map.groupBy(open, ({ key }) => key),
    ([tag, found]) => ({ tag, values: [...new Set(found.map(({ value }) => value))].sort() }),
  );
}
