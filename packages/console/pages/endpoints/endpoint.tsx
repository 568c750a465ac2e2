import { useState } from 'react';
import { useAbout } from '../../data/about.ts';
import { act } from '../../data/api.ts';
import type { Attempt } from '../../data/deliveries.ts';
import { type EndpointRow, stateOf, useEndpoints } from '../../data/endpoints.ts';
import { formatMoment, formatMs, shortError } from '../../data/format.ts';
import { linkTo } from '../../data/route.ts';
import { useData } from '../../data/use-data.ts';
import { outcomeOf } from '../../deliveries/timeline.tsx';
import { type Column, DataTable } from '../../parts/data-table.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Card, Empty, Notice, Page, Status, Waiting } from '../../parts/parts.tsx';
import { say } from '../../parts/toasts.tsx';
import { HourPlot, type Hours } from '../../plots/hour-plot.tsx';

/** An endpoint with its last attempts. */
interface EndpointView extends EndpointRow {
  readonly stats: Hours & { readonly byStatus: Readonly<Record<string, number | undefined>> };
  readonly attempts: readonly (Attempt & { readonly event: string; readonly type: string })[];
  readonly hasPortal: boolean;
}

/** One endpoint: how it is, its settings and its last attempts. */
export function Endpoint({ id }: { id: string }) {
  const about = useAbout();
  const path = `webhookendpoints/${encodeURIComponent(id)}`;
  const { value, error, reload } = useData<EndpointView>(path, 5_000);
  const counts = useEndpoints();
  const [isAsking, setAsking] = useState(false);
  const back = (
    <a className="button" href="#/endpoints">
      <Icon name="back" />
      All endpoints
    </a>
  );
  if (value === undefined || error !== undefined) {
    return (
      <Page title="Endpoint" actions={back}>
        <Card>
          {error?.status === 404 ? (
            <Empty icon="search" title="There is no such endpoint">
              It may have been removed.
            </Empty>
          ) : (
            <Waiting error={error} what="The endpoint" />
          )}
        </Card>
      </Page>
    );
  }
  const { tenant, url, disabledAt, hasPortal } = value;
  const { tone, words, since } = stateOf(value);

  async function change(action: 'enable' | 'disable', done: string): Promise<void> {
    try {
      await act('POST', path, { action });
      say('good', done);
    } catch (failure) {
      say('bad', (failure as Error).message);
    }
    reload();
    counts.reload();
  }

  async function openPortal(): Promise<void> {
    // Opened at once: browsers block what opens after an answer.
    const tab = open('about:blank', '_blank');
    try {
      const { url: link } = await act<{ readonly url: string }>('POST', path, { action: 'portal' });
      if (tab === null) return say('bad', 'The browser has blocked the portal; allow this page to open tabs');
      tab.opener = null;
      tab.location.replace(link);
    } catch (failure) {
      tab?.close();
      say('bad', (failure as Error).message);
    }
  }

  const mayAct = about?.actions === true;
  return (
    <Page
      title={url}
      about={
        <>
          <Status tone={tone}>{words}</Status> {since !== undefined && `since ${since} · `}of {tenant}
          {value.description !== undefined && ` · ${value.description}`}
        </>
      }
      actions={
        <>
          {back}
          {mayAct && hasPortal && (
            <button type="button" className="button" onClick={() => void openPortal()}>
              <Icon name="link" />
              Open the portal of {tenant}
            </button>
          )}
          {mayAct &&
            (disabledAt === null ? (
              <button type="button" className="button" onClick={() => setAsking(true)}>
                <Icon name="pause" />
                Disable
              </button>
            ) : (
              <button
                type="button"
                className="button primary"
                onClick={() => void change('enable', 'Enabled: it gets the events from now on')}
              >
                <Icon name="play" />
                Enable again
              </button>
            ))}
        </>
      }
    >
      {ADVICE[value.state] !== undefined && <Notice tone={tone}>{ADVICE[value.state]}</Notice>}
      <div className="grid two">
        <Facts endpoint={value} />
        <HourPlot stats={value.stats} />
      </div>
      <Attempts endpoint={value} />
      {isAsking && (
        <Dialog
          title="Disable this endpoint?"
          submit="Disable"
          tone="danger"
          onSubmit={() => {
            setAsking(false);
            void change('disable', 'Disabled: it gets no more events');
          }}
          onClose={() => setAsking(false)}
        >
          <p>
            <strong className="break">{url}</strong> gets no more events, and those that wait are given up.
            The customer sees in the portal that it is disabled.
          </p>
        </Dialog>
      )}
    </Page>
  );
}

const ADVICE: Readonly<Record<string, string>> = {
  disabled:
    'Portico has disabled it. Ask the customer to mend the receiver, then enable it again: its failures are forgotten, and the customer can replay what it missed.',
  failing:
    'Its attempts fail and are repeated at longer and longer intervals. If none succeeds for days, Portico disables it.',
};

function Facts({ endpoint }: { endpoint: EndpointView }) {
  const { id, tenant, types, channels, filter, rate, order, transform, headers, createdAt, recent, stats } =
    endpoint;
  const { done = 0, dead = 0, pending = 0, processing = 0 } = stats.byStatus;
  const times = [
    ['Last success', recent.lastSuccessAt],
    ['Last failure', recent.lastFailureAt],
    ['Created', createdAt],
  ] as const;
  const facts: readonly (readonly [title: string, text: string | undefined])[] = [
    ['Last events', `${done} done, ${dead} dead, ${pending + processing} open`],
    ...times.map(
      ([title, at]) => [title, at === null ? 'none of the last events' : formatMoment(at)] as const,
    ),
    ['Events', types?.join(', ') ?? 'all'],
    ['Channels', channels?.join(', ')],
    ['Filter', filter === undefined ? undefined : JSON.stringify(filter)],
    ['Rate', rate],
    ['Order', order],
    ['Transformation', transform],
    ['Headers', headers?.join(', ')],
    ['Id', id],
  ];
  return (
    <Card title="The endpoint">
      <dl className="facts">
        <div>
          <dt>Tenant</dt>
          <dd className="break">
            <a href={linkTo('endpoints', '', { tenant })}>{tenant}</a>
          </dd>
        </div>
        {facts.map(
          ([title, text]) =>
            text !== undefined && (
              <div key={title}>
                <dt>{title}</dt>
                <dd className="break">{text}</dd>
              </div>
            ),
        )}
      </dl>
    </Card>
  );
}

type AttemptRow = EndpointView['attempts'][number];

/** The last attempts, each with the way to its delivery. */
function Attempts({ endpoint: { tenant, id, attempts } }: { endpoint: EndpointView }) {
  const hasDeliveries = useAbout()?.endpoints.includes('deliveries') === true;
  const target = `endpoint:${tenant}/${id}`;
  const all = hasDeliveries && <a href={linkTo('deliveries', '', { target })}>All its deliveries</a>;
  return (
    <Card title="Last attempts" note={all}>
      {attempts.length === 0 ? (
        <Empty icon="deliveries" title="Nothing was sent lately" />
      ) : (
        <DataTable
          label="Last attempts"
          rows={attempts}
          keyOf={({ event, attempt, startedAt }) => `${event} ${attempt} ${startedAt}`}
          columns={[
            eventColumn(hasDeliveries),
            ...COLUMNS,
            attempts.some(({ error }) => error) && ERROR_COLUMN,
          ]}
        />
      )}
    </Card>
  );
}

const eventColumn = (isLinked: boolean): Column<AttemptRow> => ({
  title: 'Event',
  isRowHead: true,
  className: 'break',
  cell: ({ event, type }) => (isLinked ? <a href={linkTo('deliveries', event)}>{type}</a> : type),
});

const COLUMNS: readonly Column<AttemptRow>[] = [
  { title: 'Began', className: 'nowrap', cell: ({ startedAt }) => <time>{formatMoment(startedAt)}</time> },
  { title: 'Attempt', className: 'number', cell: ({ attempt }) => attempt },
  {
    title: 'Outcome',
    cell: ({ outcome }) => {
      const [tone, words] = outcomeOf(outcome);
      return <Status tone={tone}>{words}</Status>;
    },
  },
  { title: 'Answer', className: 'number', cell: ({ status }) => status ?? <span className="quiet">–</span> },
  {
    title: 'Took',
    className: 'number',
    cell: ({ durationMs }) => (durationMs === null ? '–' : formatMs(durationMs)),
  },
];

/** Shown if one of the attempts failed. */
const ERROR_COLUMN: Column<AttemptRow> = {
  title: 'Error',
  className: 'error-cell',
  cell: ({ error }) => (error ? shortError(error) : <span className="quiet">–</span>),
};
