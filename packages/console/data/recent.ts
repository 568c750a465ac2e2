import { formatSpan } from './format.ts';
import type { HistoryData } from './history.ts';

/** The span of recent values in milliseconds, if the history is fine enough. */
const RECENT = 60_000;

/** The number of recent points in a history. */
function pointsOf({ interval }: HistoryData): number {
  return Math.max(1, Math.round(RECENT / interval));
}

/** The span of recent values, in words. */
export function recentSpan(history: HistoryData | undefined): string {
  if (history === undefined || history.interval <= RECENT) return 'last minute';
  return `last ${formatSpan(history.interval)}`;
}

/** The mean or maximum of a column's recent values; undefined without any. */
export function recent(
  history: HistoryData | undefined,
  column: string,
  how: 'mean' | 'peak' = 'mean',
): number | undefined {
  if (history === undefined) return undefined;
  const values = history.columns[column]?.values.slice(-pointsOf(history)) ?? [];
  const known = values.filter((value) => value !== null);
  if (known.length === 0) return undefined;
  return how === 'peak' ? Math.max(...known) : known.reduce((sum, each) => sum + each, 0) / known.length;
}
