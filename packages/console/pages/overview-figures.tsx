import { useMemo } from 'react';
import { DOOR_TITLES, useAbout } from '../data/about.ts';
import { formatNumber, formatValue } from '../data/format.ts';
import { type HistoryData, lengthOf, recent } from '../data/history.ts';
import { Plot } from '../plots/plot.tsx';
import { Spark } from '../plots/spark.tsx';

interface Figure {
  readonly title: string;
  /** Undefined while it is unknown. */
  readonly value: string | undefined;
  readonly note: string;
  /** The columns whose sum the small plot shows. */
  readonly drawn: readonly string[];
  readonly isBad?: boolean;
}

/** The service in six numbers, each with its recent course. */
export function Figures({ history }: { history: HistoryData | undefined }) {
  const doors = (useAbout()?.doors ?? []).map(({ name }) => name);
  return (
    <ul className="glance" aria-label="At a glance">
      {figuresOf(history, doors).map(({ title, value, note, drawn, isBad }) => (
        <li key={title} className={isBad ? 'card figure bad' : 'card figure'}>
          <span className="figure-title">{title}</span>
          <span className="figure-value">{value ?? '–'}</span>
          <span className="figure-note">{note}</span>
          {history !== undefined && (
            <Spark lines={drawn.map((name) => history.columns[name]?.values ?? [])} />
          )}
        </li>
      ))}
    </ul>
  );
}

function figuresOf(history: HistoryData | undefined, doors: readonly string[]): readonly Figure[] {
  const value = (column: string, how?: 'mean' | 'peak') => recent(history, column, how);
  const shown = (column: string, how?: 'mean' | 'peak') => {
    const found = value(column, how);
    return found === undefined ? undefined : formatValue(found, history?.columns[column]?.unit ?? '');
  };
  const rates = doors.map((door) => value(`${door}.requests`) ?? 0);
  const requests = rates.reduce((sum, rate) => sum + rate, 0);
  const failed = doors.reduce((sum, door, i) => sum + (rates[i] ?? 0) * (value(`${door}.errors`) ?? 0), 0);
  const errors = requests === 0 ? 0 : failed / requests;
  const slowest = doors
    .map((door) => ({ door, p99: value(`${door}.p99`, 'peak') ?? -1 }))
    .reduce((worst, each) => (each.p99 > worst.p99 ? each : worst), { door: '', p99: -1 });
  const isKnown = history !== undefined && doors.length > 0;
  const open = value('inbox.open');
  const dead = value('inbox.dead', 'peak') ?? 0;
  const age = value('inbox.age') ?? 0;
  const hasInbox = history === undefined || 'inbox.open' in history.columns;
  return [
    {
      title: 'Requests',
      value: isKnown ? formatValue(requests, '1/s') : undefined,
      note: doors.length === 1 ? 'at one door' : `at ${doors.length} doors`,
      drawn: doors.map((door) => `${door}.requests`),
    },
    {
      title: 'Errors',
      value: isKnown ? formatValue(errors, 'share') : undefined,
      note: '5xx of all replies',
      drawn: doors.map((door) => `${door}.errors`),
      isBad: errors > 0,
    },
    {
      title: 'Latency, p99',
      value: slowest.p99 < 0 ? undefined : formatValue(slowest.p99, 'ms'),
      note: slowest.door === '' ? 'no requests' : `${DOOR_TITLES[slowest.door] ?? slowest.door} is slowest`,
      drawn: slowest.door === '' ? [] : [`${slowest.door}.p99`],
    },
    ...(hasInbox
      ? [
          {
            title: 'Backlog',
            value: open === undefined ? undefined : `${formatNumber(Math.round(open))} open`,
            note:
              [
                ...(age < 1 ? [] : [`oldest ${formatValue(age, 's')}`]),
                ...(dead > 0 ? [`${formatNumber(dead)} dead`] : []),
              ].join(', ') || 'empty',
            drawn: ['inbox.open'],
          },
        ]
      : []),
    {
      title: 'Event loop delay',
      value: shown('eventloop.p99', 'peak'),
      note: `CPU ${shown('process.cpu') ?? '–'} of a core`,
      drawn: ['eventloop.p99'],
    },
    {
      title: 'Memory',
      value: shown('process.memory'),
      note: `heap ${shown('process.heap') ?? '–'}`,
      drawn: ['process.memory'],
    },
  ];
}

/** A plot and its columns. */
interface PlotSpec {
  readonly title: string;
  readonly columns: readonly (readonly [column: string, label: string])[];
  readonly least?: number;
}

/** All plots of the overview, those of the doors first. */
export function Plots({ history, window }: { history: HistoryData; window: string }) {
  const about = useAbout();
  const specs = useMemo(() => plotsOf((about?.doors ?? []).map(({ name }) => name)), [about]);
  const to = history.times.at(-1) ?? Date.now();
  const shown = specs.filter(({ columns }) => columns.some(([column]) => column in history.columns));
  return (
    <div className="plots">
      {shown.map((spec) => (
        <HistoryPlot key={spec.title} spec={spec} history={history} from={to - lengthOf(window)} to={to} />
      ))}
    </div>
  );
}

function HistoryPlot({
  spec: { title, columns, least = 0 },
  history,
  from,
  to,
}: {
  spec: PlotSpec;
  history: HistoryData;
  from: number;
  to: number;
}) {
  const lines = useMemo(
    () =>
      columns.flatMap(([column, label]) => {
        const found = history.columns[column];
        return found === undefined ? [] : [{ label, values: found.values }];
      }),
    [columns, history],
  );
  const unit =
    columns.map(([column]) => history.columns[column]?.unit).find((each) => each !== undefined) ?? '';
  return (
    <Plot title={title} unit={unit} times={history.times} lines={lines} from={from} to={to} least={least} />
  );
}

function plotsOf(doors: readonly string[]): readonly PlotSpec[] {
  const perDoor = (what: string) =>
    doors.map((door) => [`${door}.${what}`, DOOR_TITLES[door] ?? door] as const);
  return [
    { title: 'Requests', columns: perDoor('requests'), least: 1 },
    { title: 'Share of errors (5xx)', columns: perDoor('errors'), least: 0.05 },
    { title: 'Latency, median', columns: perDoor('p50'), least: 1 },
    { title: 'Latency, 99th percentile', columns: perDoor('p99'), least: 1 },
    {
      title: 'Event loop delay',
      columns: [
        ['eventloop.p99', 'p99'],
        ['eventloop.max', 'Highest'],
      ],
      least: 10,
    },
    {
      title: 'CPU, in cores',
      columns: [['process.cpu', 'CPU']],
      least: 0.2,
    },
    {
      title: 'Memory',
      columns: [
        ['process.memory', 'Resident'],
        ['process.heap', 'Heap'],
      ],
    },
    { title: 'Database commits', columns: [['database.commits', 'Commits']], least: 1 },
    { title: 'Writes per commit', columns: [['database.batch', 'Batch']], least: 2 },
    { title: 'Commit time', columns: [['database.commit', 'Mean']], least: 1 },
    { title: 'Deliveries received', columns: [['inbox.received', 'Received']], least: 1 },
    {
      title: 'Inbox backlog',
      columns: [
        ['inbox.open', 'Open'],
        ['inbox.dead', 'Dead'],
      ],
      least: 5,
    },
    { title: 'Oldest open delivery', columns: [['inbox.age', 'Age']], least: 10 },
  ];
}
