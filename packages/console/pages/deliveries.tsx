import { useEffect, useState } from 'react';
import { useAbout } from '../data/about.ts';
import {
  type Action,
  type DeliveryList,
  type DeliveryRow,
  isActionable,
  listQuery,
  STATUSES,
  statusTone,
} from '../data/deliveries.ts';
import { formatBytes, formatMoment } from '../data/format.ts';
import { useLive } from '../data/live.ts';
import { linkTo, type Route } from '../data/route.ts';
import { usePaged } from '../data/use-data.ts';
import { type Column, DataTable, Loaded, Pager } from '../parts/data-table.tsx';
import { type Filter, Filters } from '../parts/filters.tsx';
import { Icon } from '../parts/icon.tsx';
import { Card, Empty, Notice, Page, PauseButton, Status } from '../parts/parts.tsx';
import { ActOnAll, actOn, SendTest } from './deliveries-act.tsx';
import { Delivery } from './delivery.tsx';

/** The webhook deliveries; new ones appear as they arrive. */
export function Deliveries({ route }: { route: Route }) {
  return route.item === '' ? <List route={route} /> : <Delivery id={route.item} />;
}

const PAGE = '50';

const FILTERS: readonly Filter[] = [
  {
    kind: 'choice',
    name: 'status',
    label: 'Status',
    options: [['', 'Any'], ...STATUSES.map((status) => [status, status] as const)],
  },
  {
    kind: 'choice',
    name: 'since',
    label: 'Received',
    options: [
      ['', 'Any time'],
      ['15m', 'Last 15 minutes'],
      ['1h', 'Last hour'],
      ['24h', 'Last 24 hours'],
      ['7d', 'Last 7 days'],
    ],
  },
  { kind: 'time', name: 'until', label: 'Before' },
  { kind: 'text', name: 'event', label: 'Event', hint: 'new_commit' },
  { kind: 'text', name: 'source', label: 'Source', hint: 'github' },
  { kind: 'text', name: 'text', label: 'Text in the body', hint: 'customer or id', isWide: true },
];

function List({ route }: { route: Route }) {
  const about = useAbout();
  const [isPaused, setPaused] = useState(false);
  const [hasChanged, setChanged] = useState(false);
  const [dialog, setDialog] = useState<Action | 'test'>();
  const list = usePaged<DeliveryList>(route, 'before', (query) => {
    const before = query.get('before');
    return listQuery(query, { limit: PAGE, ...(before !== null && { before }) });
  });
  const { filters, isFirst, reload, turnTo } = list;

  useLive('deliveries', {
    deliveries: () => {
      if (isPaused) setChanged(true);
      else if (isFirst) reload();
    },
  });
  useEffect(() => {
    if (!isPaused) setChanged(false);
  }, [isPaused]);

  const isFiltered = Object.keys(filters).length > 0;
  const mayAct = about?.actions === true;
  const close = () => setDialog(undefined);
  const toAll = (action: Action, words: string, className: string) => (
    <button type="button" className={`button small ${className}`} onClick={() => setDialog(action)}>
      {words} all {isFiltered ? 'matching' : ''}
    </button>
  );
  return (
    <Page
      title="Deliveries"
      about="The deliveries of the webhook door and their status."
      actions={
        <>
          <PauseButton isPaused={isPaused} onChange={setPaused} />
          {mayAct && about.endpoints.includes('test-deliveries') && (
            <button type="button" className="button primary" onClick={() => setDialog('test')}>
              <Icon name="send" />
              Send a test delivery
            </button>
          )}
        </>
      }
    >
      <Filters filters={FILTERS} values={filters} onApply={list.apply} />
      {hasChanged && <Notice tone="info">The list has changed since you paused it.</Notice>}
      <Card>
        <Loaded data={list} what="The list of deliveries">
          {({ items, next }) => (
            <>
              {items.length === 0 ? (
                <NoDeliveries isFiltered={isFiltered} isEnd={next === null} />
              ) : (
                <DataTable
                  label="Deliveries"
                  rows={items}
                  keyOf={({ id }) => id}
                  columns={[...COLUMNS, mayAct && actionsOf(reload)]}
                />
              )}
              {(items.length > 0 || next !== null) && (
                <Pager
                  actions={
                    mayAct && (
                      <>
                        {toAll('replay', 'Replay', '')}
                        {toAll('discard', 'Discard', 'danger')}
                      </>
                    )
                  }
                  pages={[
                    { title: 'Newest', onGo: isFirst ? undefined : () => turnTo() },
                    { title: 'Older', onGo: next === null ? undefined : () => turnTo(String(next)) },
                  ]}
                />
              )}
            </>
          )}
        </Loaded>
      </Card>
      {dialog === 'test' && <SendTest onClose={close} onSent={reload} />}
      {(dialog === 'replay' || dialog === 'discard') && (
        <ActOnAll action={dialog} query={route.query} onClose={close} onDone={reload} />
      )}
    </Page>
  );
}

function NoDeliveries({ isFiltered, isEnd }: { isFiltered: boolean; isEnd: boolean }) {
  if (!isFiltered) {
    return (
      <Empty icon="deliveries" title="No deliveries yet">
        Deliveries appear here as soon as a sender posts one. You can send a test delivery yourself.
      </Empty>
    );
  }
  return (
    <Empty icon="deliveries" title="Nothing matches">
      {isEnd
        ? 'No delivery matches all filters.'
        : 'None so far; older deliveries have not been searched yet.'}
    </Empty>
  );
}

const COLUMNS: readonly Column<DeliveryRow>[] = [
  { title: 'Received', className: 'nowrap', cell: ({ receivedAt }) => formatMoment(receivedAt) },
  { title: 'Status', cell: ({ status }) => <Status tone={statusTone(status)}>{status}</Status> },
  {
    title: 'Event',
    className: 'cut',
    cell: ({ event, senderEvent }) => (
      <>
        {event ?? <span className="quiet">none</span>}
        {senderEvent !== event && <span className="quiet"> {senderEvent}</span>}
      </>
    ),
  },
  {
    title: 'Source',
    className: 'cut',
    cell: ({ source }) => source || <span className="quiet">/webhook</span>,
  },
  { title: 'Attempts', className: 'number', cell: ({ attempts }) => attempts },
  { title: 'Size', className: 'number', cell: ({ size }) => formatBytes(size) },
  {
    title: 'Delivery',
    className: 'nowrap',
    cell: ({ id }) => (
      <a className="mono" href={linkTo('deliveries', id)}>
        {id.slice(0, 18)}…
      </a>
    ),
  },
];

function actionsOf(onDone: () => void): Column<DeliveryRow> {
  return {
    title: 'Actions',
    isTitleHidden: true,
    className: 'row-actions',
    cell: (row) =>
      (['replay', 'discard'] as const)
        .filter((action) => isActionable(action, row))
        .map((action) => {
          const words = action === 'replay' ? 'Replay' : 'Discard';
          return (
            <button
              key={action}
              type="button"
              className="button small"
              aria-label={`${words} ${row.id}`}
              onClick={() => void actOn(row.id, action, onDone)}
            >
              {words}
            </button>
          );
        }),
  };
}
