import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { parseTemplate } from './parse-template.ts';
import { runTemplate } from './run-template.ts';

type Values = Readonly<Record<string, unknown>>;

/** The output of `helm template <release> <chart>`, for the subset of the language that the chart uses. */
export function renderChart(chart: string, release: string, values: Values = {}): string {
  const read = (path: string) => readFileSync(join(chart, path), 'utf8');
  const { name, version, appVersion } = parse(read('Chart.yaml'));
  const files = readdirSync(join(chart, 'templates')).sort();
  const parsed = files.map((file) => ({ file, parts: parseTemplate(read(`templates/${file}`)) }));
  const defined = new Map(
    parsed.flatMap(({ parts }) =>
      parts.flatMap((part) => (part.kind === 'define' ? [[part.name, part.body] as const] : [])),
    ),
  );
  const data = {
    Values: merge(parse(read('values.yaml')), values),
    Chart: { Name: name, Version: version, AppVersion: appVersion },
    Release: { Name: release, Service: 'Helm' },
  };
  return parsed
    .filter(({ file }) => file.endsWith('.yaml'))
    .map(({ parts }) => runTemplate(parts, data, defined).trim())
    .filter((text) => text !== '')
    .map((text) => `---\n${text}\n`)
    .join('');
}

/** Merges objects; replaces all other values. */
function merge(values: Values, over: Values): Values {
  const isObject = (value: unknown): value is Values =>
    typeof value === 'object' && value !== null && !Array.isArray(value);
  const entries = Object.entries(over).map(([key, value]) => {
    const own = values[key];
    return [key, isObject(own) && isObject(value) ? merge(own, value) : value];
  });
  return { ...values, ...Object.fromEntries(entries) };
}
