import { type About, DOOR_TITLES, useAbout } from '../data/about.ts';
import { formatBytes, formatSpan, formatValue } from '../data/format.ts';
import { type HistoryData, recent, recentSpan, type Samples, useHistory, WINDOWS } from '../data/history.ts';
import { useLive } from '../data/live.ts';
import { goTo, linkTo, type Route } from '../data/route.ts';
import { type Data, useData } from '../data/use-data.ts';
import { type Column, DataTable, Loaded } from '../parts/data-table.tsx';
import { Card, Page, Segments, Status, type Tone, Waiting } from '../parts/parts.tsx';
import { Figures, Plots } from './overview-figures.tsx';

/** An overview of the service. */
export function Overview({ route }: { route: Route }) {
  const about = useAbout();
  const window = WINDOWS.find(([each]) => each === route.query.get('window'))?.[0] ?? '15m';
  const health = useData<HealthPart>('health', 5_000);
  const { history, error, add } = useHistory(window);
  useLive('history', { samples: (samples: Samples) => add(samples) });

  return (
    <Page title="Overview" about={<Facts />}>
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
        <Plots history={history as HistoryData} window={window} />
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
                    <span className="component-text">{describe(part) || WELL[name]}</span>
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
      return isAlarm && value > 0 ? <strong className="bad">{text}</strong> : text;
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
