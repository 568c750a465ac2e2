import { useData } from '../../data/use-data.ts';
import { Waiting } from '../../parts/parts.tsx';
import { HourPlot, type Hours } from '../../plots/hour-plot.tsx';
import { pathOf } from '../data.ts';

interface Stats extends Hours {
  /** The latest events of the endpoint, which are counted. */
  readonly counted: number;
  readonly byStatus: Readonly<Record<string, number | undefined>>;
}

/** How an endpoint was in the last day: numbers, a plot by the hour, and the same as text. */
export function Health({ id }: { id: string }) {
  const { value, error } = useData<Stats>(`${pathOf(id)}/stats`, 15_000);
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
      <HourPlot stats={value} />
    </section>
  );
}
