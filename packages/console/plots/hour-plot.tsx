import { useMemo } from 'react';
import { formatMoment } from '../data/format.ts';
import { Plot } from './plot.tsx';

/** The latest events of an endpoint that ended, by the hour. */
export interface Hours {
  readonly hours: readonly { readonly at: string; readonly done: number; readonly dead: number }[];
}

const HOUR = 3_600_000;
const SHOWN = 24;

/** The events of the last day by the hour: a plot, and the same as text. */
export function HourPlot({ stats }: { stats: Hours }) {
  const { times, lines } = useMemo(() => hoursOf(stats), [stats]);
  return (
    <>
      <Plot
        title="Deliveries by the hour, last day"
        unit=""
        times={times}
        lines={lines}
        from={times[0] ?? 0}
        // Not the full hour itself, whose label would be cut off.
        to={(times.at(-1) ?? 0) + HOUR - 1}
        least={4}
      />
      <ul className="unseen">
        {stats.hours.map(({ at, done, dead }) => (
          <li key={at}>
            From {formatMoment(at)}: {done} delivered, {dead} failed.
          </li>
        ))}
      </ul>
    </>
  );
}

/** Each hour of the last day; those without an end have 0. */
function hoursOf({ hours }: Hours) {
  const known = new Map(hours.map(({ at, ...counts }) => [Date.parse(at), counts]));
  const last = Math.floor(Date.now() / HOUR) * HOUR;
  const times = Array.from({ length: SHOWN }, (_, i) => last - (SHOWN - 1 - i) * HOUR);
  const lines = [
    { label: 'Delivered', tone: 'good', values: times.map((at) => known.get(at)?.done ?? 0) },
    { label: 'Failed', tone: 'bad', values: times.map((at) => known.get(at)?.dead ?? 0) },
  ] as const;
  return { times, lines };
}
