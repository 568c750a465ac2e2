import { useAbout } from '../../data/about.ts';
import { formatSpan } from '../../data/format.ts';
import { type HistoryData, type Samples, useHistory, WINDOWS } from '../../data/history.ts';
import { useLive } from '../../data/live.ts';
import { goTo, linkTo, type Route } from '../../data/route.ts';
import { useData } from '../../data/use-data.ts';
import { Card, Page, Segments, Waiting } from '../../parts/parts.tsx';
import { Doors } from './overview-doors.tsx';
import { Figures } from './overview-figures.tsx';
import { type Health, HealthCard } from './overview-health.tsx';
import { Plots } from './overview-plots.tsx';
import { Processes } from './overview-processes.tsx';

/** An overview of the service. */
export function Overview({ route }: { route: Route }) {
  const about = useAbout();
  const window = WINDOWS.find(([each]) => each === route.query.get('window'))?.[0] ?? '15m';
  const health = useData<Health>('health', 5_000);
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
