import type { Tag } from '../../observability/metrics/meter.ts';

/** A number as both formats write it. */
export function numberText(value: number): string {
  if (value === Infinity) return '+Inf';
  if (value === -Infinity) return '-Inf';
  return String(value);
}

/** The upper bound of a bucket: always with a fraction, as OpenMetrics wants it, so that both formats agree. */
export function boundText(bound: number): string {
  const text = numberText(bound);
  return /^\d+$/.test(text) ? `${text}.0` : text;
}

/** Labels as written between braces. */
export function labelsText(tags: readonly Tag[]): string {
  return tags.map(({ key, value }) => `${key.replaceAll('.', '_')}="${labelValue(value)}"`).join();
}

/** A sample up to its value. */
export function samplePrefix(name: string, labels: string): string {
  return labels === '' ? `${name} ` : `${name}{${labels}} `;
}

/** Prometheus takes a NUL for the end of the text. */
function labelValue(value: string): string {
  return value
    .replaceAll('\0', '\ufffd')
    .replaceAll('\\', '\\\\')
    .replaceAll('\n', '\\n')
    .replaceAll('"', '\\"');
}

/** A description on one line; only OpenMetrics escapes quotes in it. */
export function helpText(description: string, quotes: boolean): string {
  const text = description.replaceAll('\0', '\ufffd').replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
  return quotes ? text.replaceAll('"', '\\"') : text;
}
