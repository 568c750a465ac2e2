import { familiesOf } from '../../src/management/endpoints/prometheus.ts';
import type { ListedMeter } from './meters.ts';

/** The meters as a Markdown table: Actuator's name, Prometheus's names, tags and meaning. */
export function meterTable(meters: readonly ListedMeter[]): string {
  const lines = meters.map((meter) => {
    const names = seriesNames(meter).map((name) => `\`${name}\``);
    const tags = meter.tagKeys.map((key) => `\`${key}\``).join(', ');
    const needs = meter.needs === undefined ? '' : ` (with ${meter.needs})`;
    return `| \`${meter.name}\` | ${meter.type} | ${names.join('<br>')} | ${tags} | ${meter.description}${needs} |`;
  });
  return [
    '| Meter | Type | In Prometheus | Tags | Meaning |',
    '| --- | --- | --- | --- | --- |',
    ...lines,
  ].join('\n');
}

/** The names of a meter's series in Prometheus. */
export function seriesNames(meter: ListedMeter): readonly string[] {
  const families = familiesOf({ ...meter, series: () => [] });
  return families.flatMap(({ bucketName, samples }) => [
    ...(bucketName === undefined ? [] : [bucketName]),
    ...samples.map(({ name }) => name),
  ]);
}
