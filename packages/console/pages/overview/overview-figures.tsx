import { DOOR_TITLES, useAbout } from '../../data/about.ts';
import { formatNumber, formatValue } from '../../data/format.ts';
import type { HistoryData } from '../../data/history.ts';
import { recent } from '../../data/recent.ts';
import { Spark } from '../../plots/spark.tsx';

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
