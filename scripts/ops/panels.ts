import { seriesNames } from './meter-table.ts';
import type { ListedMeter } from './meters.ts';

/** One query of a panel. */
interface Query {
  readonly expr: string;
  readonly legend: string;
}

/** The content of a panel, without a position. */
export interface Panel {
  readonly title: string;
  readonly description: string;
  /** A Grafana unit. */
  readonly unit: string;
  readonly queries: readonly Query[];
}

/** Selects the instances that the dashboard's variables name. */
const CHOSEN = ['job=~"$job"', 'instance=~"$instance"'];
/** At least four scrapes, at any scrape interval. */
const RANGE = '[$__rate_interval]';
const UNITS: Readonly<Record<string, string>> = { bytes: 'bytes', seconds: 's' };
/** Gauges between 0 and 1. */
const SHARE = /\.(?:utilization|usage)$/;

/** A series name with a selector; `more` restricts it. */
export function chosen(name: string, more: readonly string[] = []): string {
  return `${name}{${[...CHOSEN, ...more].join(',')}}`;
}

/** The rate per second over all chosen instances, by labels. */
export function rateOf(name: string, by: readonly string[], more: readonly string[] = []): string {
  const grouping = by.length === 0 ? '' : ` by (${by.join(', ')})`;
  return `sum${grouping} (rate(${chosen(name, more)}${RANGE}))`;
}

/** A quantile of a histogram over all chosen instances. */
export function quantileOf(quantile: number, buckets: string, more: readonly string[] = []): string {
  return `histogram_quantile(${quantile}, ${rateOf(buckets, ['le'], more)})`;
}

/** The panels of a meter. `more` restricts them to some of its series, and `title` describes which. */
export function panelsOf(
  meter: ListedMeter,
  { more = [], title = '' }: { readonly more?: readonly string[]; readonly title?: string } = {},
): readonly Panel[] {
  const fixed = more.map((label) => label.split('=')[0]);
  const by = meter.tagKeys.map((key) => key.replaceAll('.', '_')).filter((key) => !fixed.includes(key));
  const labels = by.map((key) => `{{${key}}}`).join(' ');
  const [first = '', ...others] = seriesNames(meter);
  const panel = (aspect: string, unit: string, queries: readonly Query[]): Panel => ({
    title: [title, meter.name, aspect].filter((word) => word !== '').join(' '),
    description: meter.description,
    unit,
    queries,
  });

  if (meter.type === 'gauge') {
    const unit = SHARE.test(meter.name) ? 'percentunit' : (UNITS[meter.unit ?? ''] ?? 'short');
    return [panel('', unit, [{ expr: chosen(first, more), legend: `{{instance}} ${labels}`.trim() }])];
  }
  if (meter.type === 'counter') {
    // Seconds per second.
    const unit = meter.unit === 'seconds' ? 'percentunit' : 'ops';
    const perInstance = by.length === 0;
    const expr = rateOf(first, perInstance ? ['instance'] : by, more);
    return [panel('', unit, [{ expr, legend: perInstance ? '{{instance}}' : labels }])];
  }
  const named = (end: string) => [first, ...others].find((name) => name.endsWith(end)) ?? '';
  const [count, sum, max] = ['_count', '_sum', '_max'].map(named) as [string, string, string];
  const rates = panel('rate', 'ops', [{ expr: rateOf(count, by, more), legend: labels || 'all' }]);
  const highest = { expr: `max(${chosen(max, more)})`, legend: 'max' };
  const mean = {
    expr: `${rateOf(sum, by, more)} / ${rateOf(count, by, more)}`,
    legend: `mean ${labels}`.trim(),
  };
  const quantiles = [0.5, 0.99].map((quantile) => ({
    expr: quantileOf(quantile, first, more),
    legend: `p${quantile * 100}`,
  }));
  const times = meter.buckets === undefined ? [mean, highest] : [...quantiles, highest];
  return [rates, panel('time', 's', times)];
}

/** The panels of several meters. Gauges that measure parts of one thing share a panel, and so do counters. */
export function panelsOfAll(meters: readonly ListedMeter[]): readonly Panel[] {
  const groups = Map.groupBy(meters, ({ name, type, unit, tagKeys }) => {
    const thing = name.split('.').slice(0, 2).join('.');
    return type === 'timer' ? name : [type, thing, unit, ...tagKeys].join(' ');
  });
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    return group.length === 1 ? panelsOf(first) : [together(group)];
  });
}

function together(meters: readonly ListedMeter[]): Panel {
  const panels = meters.flatMap((meter) => panelsOf(meter));
  const thing = meters[0]?.name.split('.').slice(0, 2).join('.') ?? '';
  return {
    title: thing,
    description: meters.map(({ name, description }) => `${name}: ${description}`).join('\n'),
    unit: panels[0]?.unit ?? 'short',
    queries: panels.flatMap(({ title, queries }) =>
      queries.map(({ expr, legend }) => ({
        expr,
        legend: `${title.slice(thing.length + 1)} ${legend}`.trim(),
      })),
    ),
  };
}
