import type { ReactNode } from 'react';
import { type About, DOOR_TITLES, useAbout } from '../data/about.ts';
import { useLive } from '../data/api.ts';
import { shownCount, useFailing } from '../data/deliveries.ts';
import { formatBytes, formatNumber, formatSpan, formatValue } from '../data/format.ts';
import { type HistoryData, recent, recentSpan, type Samples, useHistory, WINDOWS } from '../data/history.ts';
import { goTo, linkTo, type Route } from '../data/route.ts';
import { type Data, useData } from '../data/use-data.ts';
import { Failures } from '../deliveries/failures.tsx';
import { type Column, DataTable, Loaded } from '../parts/data-table.tsx';
import { Card, Page, Segments, Status, type Tone, Waiting } from '../parts/parts.tsx';
import { HistoryPlots } from '../plots/history-plots.tsx';
import { Spark } from '../plots/plot.tsx';

/** An overview of the service. */
export function Overview({ route }: { route: Route }) {
  const about = useAbout();
  const window = WINDOWS.find(([each]) => each === route.query.get('window'))?.[0] ?? '15m';
  const health = useData<HealthPart>('health', 5_000);
  const { history, error, add } = useHistory(window);
  const failing = useFailing();
  useLive('history,deliveries', {
    samples: (samples: Samples) => add(samples),
    deliveries: () => failing.reload(),
  });

  return (
    <Page title="Overview" about={<Facts />}>
      <Failures />
      <Figures history={history} />
      <div className="grid two">
        <HealthCard health={health} />
        <Doors doors={about?.doors ?? []} history={history} />
      </div>
      <Processes />
      <div className="section-head">
        <h2>History of this process</h2>
        <Segments
          label="Window of the plots"
          options={WINDOWS}
          value={window}
          onPick={(picked) =>
            goTo(linkTo('overview', '', { window: picked === '15m' ? undefined : picked }), true)
          }
        />
      </div>
      {history === undefined ? (
        <Card>
          <Waiting error={error} what="The history" />
        </Card>
      ) : (
        <HistoryPlots history={history as HistoryData} window={window} />
      )}
    </Page>
  );
}

function Facts() {
  const about = useAbout();
  if (about === undefined) return null;
  const { host, pid, node, startedAt } = about.process;
  return (
    <>
      {about.name} {about.version} · up {formatSpan(Date.now() - Date.parse(startedAt))} · Node{' '}
      {node.slice(1)}
      {about.database !== null && ` · ${about.database}`} · process {pid} on {host}
      {about.processes.length > 1 && `, one of ${about.processes.length}`}
    </>
  );
}

interface HealthPart {
  readonly status: string;
  readonly details?: Readonly<Record<string, unknown>>;
  readonly components?: Readonly<Record<string, HealthPart>>;
}

function toneOf(status: string): Tone {
  if (status === 'UP') return 'good';
  return status === 'DOWN' ? 'bad' : 'warn';
}

const TITLES: Readonly<Record<string, string>> = {
  db: 'Database',
  writer: 'Writes',
  diskSpace: 'Disk space',
  eventLoop: 'Event loop',
  webhookBacklog: 'Webhook backlog',
};

/** Where the words about a component lead. */
const COMPONENTS: Readonly<Record<string, string>> = {
  db: linkTo('metrics', 'database.reads'),
  writer: linkTo('metrics', 'database.commits'),
  diskSpace: linkTo('metrics', 'disk.free'),
  eventLoop: '#/threads',
  webhookBacklog: linkTo('deliveries', '', { status: 'pending' }),
};

/** Words that lead to a page, if this service offers it. */
function Leading({
  to,
  className,
  children,
}: {
  to: string | undefined;
  className?: string;
  children: ReactNode;
}) {
  const about = useAbout();
  const page = /^#\/(\w+)/.exec(to ?? '')?.[1] ?? '';
  const needs: Readonly<Record<string, string>> = { threads: 'threaddump', overview: 'health' };
  if (to === undefined || about?.endpoints.includes(needs[page] ?? page) !== true) {
    return <span className={className}>{children}</span>;
  }
  return (
    <a className={className} href={to}>
      {children}
    </a>
  );
}

/** Shown for healthy components without details. */
const WELL: Readonly<Record<string, string>> = { db: 'answers', writer: 'commits' };

/** The health of the service and its dependencies, with failures in words. */
function HealthCard({ health }: { health: Data<HealthPart> }) {
  return (
    <Card title="Health" className="health">
      <Loaded data={health} what="Health">
        {({ status, components = {} }) => {
          const parts = Object.entries(components);
          const wrong = parts.filter(([, part]) => part.status !== 'UP');
          return (
            <>
              <p className={`verdict ${toneOf(status)}`}>
                <Status tone={toneOf(status)}>{status}</Status>
                <span>{verdict(parts.length, wrong)}</span>
              </p>
              <ul className="components">
                {parts.map(([name, part]) => (
                  <li key={name}>
                    <span className="component">{TITLES[name] ?? name}</span>
                    <span className="component-text">
                      <Leading to={COMPONENTS[name]}>{describe(part) || WELL[name]}</Leading>
                    </span>
                    <Status tone={toneOf(part.status)}>{part.status}</Status>
                  </li>
                ))}
              </ul>
            </>
          );
        }}
      </Loaded>
    </Card>
  );
}

function verdict(all: number, wrong: readonly (readonly [string, HealthPart])[]): string {
  if (all === 0) return 'Components are not shown.';
  if (wrong.length === 0) return `All ${all} checks pass.`;
  const names = wrong.map(([name]) => TITLES[name] ?? name).join(', ');
  return `${wrong.length} of ${all} checks ${wrong.length === 1 ? 'fails' : 'fail'}: ${names}.`;
}

/** The details of a component in a few words; an error comes first. */
function describe({ details = {}, components }: HealthPart): string {
  if (components !== undefined) {
    return Object.entries(components)
      .map(([name, { status }]) => `${name} ${status}`)
      .join(', ');
  }
  const { error, free, total, open, oldestMs, dead, p99Ms, delayMs } = details;
  if (typeof error === 'string') return error;
  if (typeof free === 'number' && typeof total === 'number') {
    return `${formatBytes(free)} of ${formatBytes(total)} free`;
  }
  if (typeof open === 'number') {
    const age = typeof oldestMs === 'number' ? `, oldest ${formatSpan(oldestMs)}` : '';
    return `${open} open${age}${dead ? `, ${dead} dead` : ''}`;
  }
  if ('thresholdMs' in details && p99Ms === undefined) return 'not measured yet';
  const late = p99Ms ?? delayMs;
  if (typeof late === 'number') return `p99 delay ${late} ms`;
  return Object.entries(details)
    .map(([name, value]) => `${name} ${typeof value === 'object' ? JSON.stringify(value) : value}`)
    .join(', ');
}

/** The doors with their addresses and current figures. */
function Doors({ doors, history }: { doors: About['doors']; history: HistoryData | undefined }) {
  const latest = (
    title: string,
    column: string,
    how: 'mean' | 'peak',
    isAlarm = false,
  ): Column<About['doors'][number]> => ({
    title,
    className: 'number',
    cell({ name }) {
      const value = recent(history, `${name}.${column}`, how);
      if (value === undefined) return <span className="quiet">–</span>;
      const text = formatValue(value, history?.columns[`${name}.${column}`]?.unit ?? '');
      const isBad = isAlarm && value > 0;
      return (
        <Leading to={linkTo('requests', '', { door: name, status: isAlarm ? '5' : undefined })}>
          {isBad ? <strong className="bad">{text}</strong> : text}
        </Leading>
      );
    },
  });
  return (
    <Card title="Doors" note={recentSpan(history)} className="doors">
      <DataTable
        label="Doors"
        rows={doors}
        keyOf={({ name }) => name}
        columns={[
          {
            title: 'Door',
            isRowHead: true,
            cell: ({ name, url, page }) => (
              <>
                <span className="door">{DOOR_TITLES[name] ?? name}</span>
                {page ? <a href={url}>{url}</a> : <span className="quiet">{url}</span>}
              </>
            ),
          },
          latest('Requests', 'requests', 'mean'),
          latest('Errors', 'errors', 'mean', true),
          latest('p50', 'p50', 'mean'),
          latest('p99', 'p99', 'peak'),
        ]}
      />
    </Card>
  );
}

/** The processes that use the database, if there are several. */
function Processes() {
  const about = useAbout();
  if (about === undefined || about.processes.length < 2) return null;
  const { host, pid } = about.process;
  // The database stores the name in this form.
  const own = `${host.replace(/[^\w.-]/g, '').slice(0, 40)}/${pid}`;
  return (
    <Card title="Processes on this database" note="plots, log and levels are of one process">
      <DataTable
        label="Processes"
        rows={about.processes}
        keyOf={({ name, since }) => `${name} ${since}`}
        columns={[
          { title: 'Process', className: 'mono break', isRowHead: true, cell: ({ name }) => name },
          {
            title: 'Connected for',
            className: 'nowrap',
            cell: ({ since }) => formatSpan(Date.now() - Date.parse(since)),
          },
          {
            title: 'Shown here',
            cell: ({ name }) =>
              name === own ? <Status tone="info">this one</Status> : <span className="quiet">no</span>,
          },
        ]}
      />
    </Card>
  );
}

interface Figure {
  readonly title: string;
  /** Undefined while it is unknown. */
  readonly value: string | undefined;
  readonly note: string;
  /** The columns whose sum the small plot shows. */
  readonly drawn: readonly string[];
  /** The page that it leads to. */
  readonly to: string;
  readonly isBad?: boolean;
}

/** The service in a few numbers, each with its recent course, and a link to its details. */
function Figures({ history }: { history: HistoryData | undefined }) {
  const doors = (useAbout()?.doors ?? []).map(({ name }) => name);
  const dead = useFailing().value?.dead;
  return (
    <ul className="glance" aria-label="At a glance">
      {figuresOf(history, doors, dead).map(({ title, value, note, drawn, to, isBad }) => (
        <li key={title} className={isBad ? 'card figure bad' : 'card figure'}>
          <span className="figure-title">{title}</span>
          <Leading to={to} className="figure-value">
            {value ?? '–'}
          </Leading>
          <span className="figure-note">{note}</span>
          {history !== undefined && (
            <Spark lines={drawn.map((name) => history.columns[name]?.values ?? [])} />
          )}
        </li>
      ))}
    </ul>
  );
}

function figuresOf(
  history: HistoryData | undefined,
  doors: readonly string[],
  deadNow: number | undefined,
): readonly Figure[] {
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
  const dead = deadNow ?? value('inbox.dead', 'peak') ?? 0;
  const age = value('inbox.age') ?? 0;
  const hasInbox = history === undefined || 'inbox.open' in history.columns;
  return [
    ...(hasInbox
      ? [
          {
            title: 'Dead deliveries',
            value: shownCount(dead),
            note: dead > 0 ? 'not retried any more' : 'nothing to replay',
            drawn: ['inbox.dead'],
            to: linkTo('deliveries', '', { status: 'dead' }),
            isBad: dead > 0,
          },
          {
            title: 'Backlog',
            value: open === undefined ? undefined : `${formatNumber(Math.round(open))} open`,
            note: age < 1 ? 'nothing waits' : `oldest ${formatValue(age, 's')}`,
            drawn: ['inbox.open'],
            to: linkTo('deliveries', '', { status: 'pending' }),
          },
        ]
      : []),
    {
      title: 'Requests',
      value: isKnown ? formatValue(requests, '1/s') : undefined,
      note: doors.length === 1 ? 'at one door' : `at ${doors.length} doors`,
      drawn: doors.map((door) => `${door}.requests`),
      to: linkTo('requests'),
    },
    {
      title: 'Errors',
      value: isKnown ? formatValue(errors, 'share') : undefined,
      note: '5xx of all replies',
      drawn: doors.map((door) => `${door}.errors`),
      to: linkTo('requests', '', { status: '5' }),
      isBad: errors > 0,
    },
    {
      title: 'Latency, p99',
      value: slowest.p99 < 0 ? undefined : formatValue(slowest.p99, 'ms'),
      note: slowest.door === '' ? 'no requests' : `${DOOR_TITLES[slowest.door] ?? slowest.door} is slowest`,
      drawn: slowest.door === '' ? [] : [`${slowest.door}.p99`],
      to: linkTo('requests', '', { door: slowest.door }),
    },
    {
      title: 'Event loop delay',
      value: shown('eventloop.p99', 'peak'),
      note: `CPU ${shown('process.cpu') ?? '–'} of a core`,
      drawn: ['eventloop.p99'],
      to: '#/threads',
    },
    {
      title: 'Memory',
      value: shown('process.memory'),
      note: `heap ${shown('process.heap') ?? '–'}`,
      drawn: ['process.memory'],
      to: linkTo('metrics', 'process.resident.memory'),
    },
  ];
}
