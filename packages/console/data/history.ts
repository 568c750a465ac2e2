import { useCallback, useEffect, useMemo, useState } from 'react';
import { formatSpan } from './format.ts';
import { useData } from './use-data.ts';

/** A window of the history, column by column. */
export interface HistoryData {
  readonly interval: number;
  readonly times: readonly number[];
  readonly columns: Readonly<
    Record<string, { readonly unit: string; readonly values: readonly (number | null)[] }>
  >;
}

/** New points of the finest resolution, as the stream sends them. */
export interface Samples {
  readonly times: readonly number[];
  readonly values: Readonly<Record<string, readonly (number | null)[]>>;
}

export const WINDOWS = [
  ['15m', '15 min'],
  ['3h', '3 hours'],
  ['24h', '24 hours'],
] as const;

const LENGTHS: Readonly<Record<string, number>> = { '15m': 900_000, '3h': 10_800_000, '24h': 86_400_000 };

/** The span of a window up to now, in milliseconds. */
export const lengthOf = (window: string) => LENGTHS[window] ?? 900_000;

/** The history of a window. The stream extends the finest one; the others are read again. */
export function useHistory(window: string) {
  const isLive = window === '15m';
  const read = useData<HistoryData>(`history?window=${window}`, isLive ? undefined : 30_000);
  const [grown, setGrown] = useState<HistoryData>();

  // biome-ignore lint/correctness/useExhaustiveDependencies: newly read data replace the samples.
  useEffect(() => setGrown(undefined), [read.value, window]);

  const history = (isLive ? grown : undefined) ?? read.value;
  const add = useCallback(
    (samples: Samples) => {
      if (!isLive) return;
      setGrown((before) => {
        const base = before ?? read.value;
        return base === undefined ? before : append(base, samples);
      });
    },
    [isLive, read.value],
  );
  return useMemo(() => ({ history, error: read.error, add }), [history, read.error, add]);
}

function append(history: HistoryData, { times, values }: Samples): HistoryData {
  const last = history.times.at(-1) ?? 0;
  const from = times.findIndex((time) => time > last);
  if (from === -1) return history;
  const earliest = (times.at(-1) ?? 0) - lengthOf('15m');
  const dropped = history.times.filter((time) => time < earliest).length;
  const grow = <T>(before: readonly T[], after: readonly T[]) => [
    ...before.slice(dropped),
    ...after.slice(from),
  ];
  const columns = Object.entries(history.columns).map(([name, column]) => {
    return [name, { ...column, values: grow(column.values, values[name] ?? []) }] as const;
  });
  return { ...history, times: grow(history.times, times), columns: Object.fromEntries(columns) };
}

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
