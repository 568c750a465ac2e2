import type { Meter, Series, Statistic, Tag } from '../observability/metrics/meter.ts';

/** The statistics of a meter without series. */
const NOTHING: Readonly<Record<Meter['type'], readonly Statistic[]>> = {
  counter: ['COUNT'],
  gauge: [],
  timer: ['COUNT', 'TOTAL_TIME', 'MAX'],
};

/**
 * A meter as the metrics endpoint shows it, merged over the series that have all of `tags`: the largest maximum, and the
 * sums of all else. Other tags are listed with their values. Undefined when no series has these tags; without tags never.
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
      // JSON has no such numbers; Actuator writes their names.
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
