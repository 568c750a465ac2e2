import { grouped } from '../measure/figures.ts';
import type { Finding, Table, Target, Unit } from '../row.ts';

/** A Markdown table whose columns are aligned in plain text too, numbers to the right. */
export function tableLines({ head, lines }: Table): readonly string[] {
  const widths = head.map((cell, column) =>
    Math.max(3, cell.length, ...lines.map((line) => line[column]?.length ?? 0)),
  );
  const row = (cells: readonly string[]) =>
    `| ${widths
      .map((width, i) => (i === 0 ? (cells[i] ?? '').padEnd(width) : (cells[i] ?? '').padStart(width)))
      .join(' | ')} |`;
  const rule = `| ${widths.map((width, i) => (i === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`)).join(' | ')} |`;
  return [row(head), rule, ...lines.map(row)];
}

/** A list item such as `- Portico / Express: 1.42x (1.38x to 1.45x), at least 1.20x: **reached**`. */
export function findingLine({ what, value, unit, spread, target }: Finding): string {
  const range = spread === undefined ? '' : ` (${spread.map((end) => amount(end, unit)).join(' to ')})`;
  const wanted =
    target === undefined
      ? ''
      : `, ${wish(target, unit)}: **${isReached(value, target) ? 'reached' : 'NOT reached'}**`;
  return `- ${what}: ${amount(value, unit)}${range}${wanted}`;
}

export function isReached(value: number, target: Target): boolean {
  return 'atLeast' in target ? value >= target.atLeast : value <= target.atMost;
}

function wish(target: Target, unit: Unit): string {
  return 'atLeast' in target
    ? `at least ${amount(target.atLeast, unit)}`
    : `at most ${amount(target.atMost, unit)}`;
}

/** A figure with its unit, such as `1.42x` or `1,200 ms`. */
export function amount(value: number, unit: Unit): string {
  if (unit === 'x') return `${value.toFixed(2)}x`;
  return `${grouped(value)} ${unit}`;
}
