import { useMemo } from 'react';
import { DOOR_TITLES, useAbout } from '../data/about.ts';
import { type HistoryData, lengthOf } from '../data/history.ts';
import { Plot } from './plot.tsx';

/** A plot and its columns. */
interface PlotSpec {
  readonly title: string;
  readonly columns: readonly (readonly [column: string, label: string, tone?: 'good' | 'warn' | 'bad'])[];
  readonly least?: number;
}

/** All plots of the overview: attempts come first, commits of the database last. */
export function HistoryPlots({ history, window }: { history: HistoryData; window: string }) {
  const about = useAbout();
  const targets = targetsOf(history).join('\n');
  const specs = useMemo(
    () =>
      plotsOf(
        (about?.doors ?? []).map(({ name }) => name),
        targets === '' ? [] : targets.split('\n'),
      ),
    [about, targets],
  );
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
      columns.flatMap(([column, label, tone]) => {
        const found = history.columns[column];
        return found === undefined ? [] : [{ label, values: found.values, tone }];
      }),
    [columns, history],
  );
  const unit =
    columns.map(([column]) => history.columns[column]?.unit).find((each) => each !== undefined) ?? '';
  return (
    <Plot title={title} unit={unit} times={history.times} lines={lines} from={from} to={to} least={least} />
  );
}

const TARGET = 'inbox.target.';
/** Maximum number of lines that can be told apart. */
const MAX_LINES = 6;

/** The columns of the targets with the most attempts. */
function targetsOf({ columns }: HistoryData): readonly string[] {
  return Object.entries(columns)
    .filter(([name]) => name.startsWith(TARGET))
    .map(([name, { values }]) => ({ name, sum: values.reduce<number>((sum, each) => sum + (each ?? 0), 0) }))
    .sort((a, b) => b.sum - a.sum)
    .slice(0, MAX_LINES)
    .map(({ name }) => name);
}

function plotsOf(doors: readonly string[], targets: readonly string[]): readonly PlotSpec[] {
  const perDoor = (what: string) =>
    doors.map((door) => [`${door}.${what}`, DOOR_TITLES[door] ?? door] as const);
  return [
    {
      title: 'Attempts by outcome',
      columns: [
        ['inbox.attempts.done', 'Done', 'good'],
        ['inbox.attempts.retry', 'Failed, retried', 'warn'],
        ['inbox.attempts.dead', 'Failed for good', 'bad'],
        ['inbox.attempts.crashed', 'Crashed'],
      ],
      least: 1,
    },
    {
      title: 'Attempts by handler',
      columns: targets.map((name) => [name, name.slice(TARGET.length).replace(/^handler:/, '')] as const),
      least: 1,
    },
    {
      title: 'Inbox backlog',
      columns: [
        ['inbox.open', 'Open'],
        ['inbox.dead', 'Dead', 'bad'],
      ],
      least: 5,
    },
    { title: 'Oldest open delivery', columns: [['inbox.age', 'Age']], least: 10 },
    { title: 'Deliveries received', columns: [['inbox.received', 'Received']], least: 1 },
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
  ];
}
