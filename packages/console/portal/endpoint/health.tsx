import { useMemo } from 'react';
import { formatMoment } from '../../data/format.ts';
import { useData } from '../../data/use-data.ts';
import { Waiting } from '../../parts/parts.tsx';
import { Plot } from '../../plots/plot.tsx';
import { pathOf } from '../data.ts';

interface Stats {
  /** The latest events of the endpoint, which are counted. */
  readonly counted: number;
  readonly byStatus: Readonly<Record<string, number | undefined>>;
  readonly hours: readonly { readonly at: string; readonly done: number; readonly dead: number }[];
}

const HOUR = 3_600_000;
const SHOWN = 24;

/** How an endpoint was in the last day: numbers, a plot by the hour, and the same as text. */
export function Health({ id }: { id: string }) {
  const { value, error } = useData<Stats>(`${pathOf(id)}/stats`, 15_000);
  const { times, lines } = useMemo(() => hoursOf(value), [value]);
  if (value === undefined) return <Waiting error={error} what="The health of the endpoint" />;
  const { done = 0, dead = 0, pending = 0, processing = 0 } = value.byStatus;
  const figures = [
    ['Delivered', done, 'good'],
    ['Waiting', pending + processing, 'quiet'],
    ['Failed', dead, dead > 0 ? 'bad' : 'quiet'],
  ] as const;
  return (
    <section className="health" aria-label="Health">
      <div className="card">
        <dl className="tiles">
          {figures.map(([title, number, tone]) => (
            <div key={title}>
              <dt>{title}</dt>
              <dd className={`figure-value ${number > 0 ? tone : 'quiet'}`}>{number}</dd>
            </div>
          ))}
        </dl>
        <p className="note card-body">
          {value.counted === 0 ? 'Nothing was sent yet.' : `Of the last ${value.counted} events.`}
        </p>
      </div>
      <Plot
        title="Deliveries by the hour, last day"
        unit=""
        times={times}
        lines={lines}
        from={times[0] ?? 0}
        to={(times.at(-1) ?? 0) + HOUR}
        least={4}
      />
      <ul className="unseen">
        {value.hours.map(({ at, done: delivered, dead: failed }) => (
          <li key={at}>
            From {formatMoment(at)}: {delivered} delivered, {failed} failed.
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Each hour of the last day; those without an end have 0. */
function hoursOf(stats: Stats | undefined) {
  const known = new Map(stats?.hours.map(({ at, ...counts }) => [Date.parse(at), counts]));
  const last = Math.floor(Date.now() / HOUR) * HOUR;
  const times = Array.from({ length: SHOWN }, (_, i) => last - (SHOWN - 1 - i) * HOUR);
  const lines = [
    { label: 'Delivered', tone: 'good', values: times.map((at) => known.get(at)?.done ?? 0) },
    { label: 'Failed', tone: 'bad', values: times.map((at) => known.get(at)?.dead ?? 0) },
  ] as const;
  return { times, lines };
}
