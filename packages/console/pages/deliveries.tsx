import { useEffect, useRef, useState } from 'react';
import { useAbout } from '../data/about.ts';
import { useLive } from '../data/api.ts';
import {
  type Action,
  asksFirst,
  type DeliveryCounts,
  type DeliveryList,
  type DeliveryRow,
  isActionable,
  listQuery,
  STATUSES,
  statusTone,
  useUntilSettled,
} from '../data/deliveries.ts';
import { formatBytes, formatMoment } from '../data/format.ts';
import { linkTo, type Route } from '../data/route.ts';
import { useData, usePaged } from '../data/use-data.ts';
import { ActOn, actOn } from '../deliveries/act-on.tsx';
import { SendDelivery } from '../deliveries/send.tsx';
import { type Column, DataTable, Loaded, Pager } from '../parts/data-table.tsx';
import { type Filter, Filters } from '../parts/filters.tsx';
import { Icon } from '../parts/icon.tsx';
import { Card, Empty, Notice, Page, PauseButton, Status } from '../parts/parts.tsx';
import { Delivery } from './delivery.tsx';

/** The webhook deliveries; new ones appear as they arrive. */
export function Deliveries({ route }: { route: Route }) {
  return route.item === '' ? <List route={route} /> : <Delivery id={route.item} />;
}

const PAGE = '50';

const FILTERS: readonly Filter[] = [
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
  { kind: 'text', name: 'target', label: 'Handler or address', hint: 'handler:new_commit' },
  { kind: 'text', name: 'text', label: 'Text in the body', hint: 'customer or id', isWide: true },
];

/** What the dialog acts on: ticked or single rows, or all that match. */
interface Asked {
  readonly action: Action;
  readonly chosen?: readonly DeliveryRow[];
}

function List({ route }: { route: Route }) {
  const about = useAbout();
  const [isPaused, setPaused] = useState(false);
  const [hasChanged, setChanged] = useState(false);
  const [isTesting, setTesting] = useState(false);
  const [asked, setAsked] = useState<Asked>();
  const [ticked, setTicked] = useState<ReadonlySet<string | number>>(new Set());
  const list = usePaged<DeliveryList>(route, 'before', (query) => {
    const before = query.get('before');
    return listQuery(query, { limit: PAGE, ...(before !== null && { before }) });
  });
  const counts = useCounts(route.query);
  const { filters, isFirst, turnTo } = list;
  const reload = () => {
    list.reload();
    counts.reload();
  };

  useLive('deliveries', {
    deliveries: () => {
      if (isPaused) return setChanged(true);
      if (isFirst) list.reload();
      counts.reload();
    },
  });
  useUntilSettled(isPaused ? [] : (list.value?.items ?? []), list.reload);
  useEffect(() => {
    if (!isPaused) setChanged(false);
  }, [isPaused]);
  // Another filter or page has other rows.
  // biome-ignore lint/correctness/useExhaustiveDependencies: nothing stays ticked unseen.
  useEffect(() => setTicked(new Set()), [route.query.toString()]);

  const isFiltered = Object.keys(filters).length > 0;
  const mayAct = about?.actions === true;
  const ask = (action: Action, row: DeliveryRow) => {
    if (asksFirst(action, row)) setAsked({ action, chosen: [row] });
    else void actOn(row.id, action, reload);
  };
  const chosen = list.value?.items.filter(({ id }) => ticked.has(id)) ?? [];
  return (
    <Page
      title="Deliveries"
      about="The deliveries of the webhook door and their status."
      actions={
        <>
          <PauseButton isPaused={isPaused} onChange={setPaused} />
          {mayAct && about.endpoints.includes('test-deliveries') && (
            <button type="button" className="button primary" onClick={() => setTesting(true)}>
              <Icon name="send" />
              Send a test delivery
            </button>
          )}
        </>
      }
    >
      <Tabs query={route.query} counts={counts.value} />
      <Filters
        filters={FILTERS}
        values={filters}
        onApply={(given) => list.apply({ ...given, ...(filters.status && { status: filters.status }) })}
      />
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
                  hrefOf={({ id }) => linkTo('deliveries', id)}
                  selection={mayAct ? { keys: ticked, onChange: setTicked } : undefined}
                  columns={[
                    ...COLUMNS,
                    items.some(({ source }) => source !== '') && SOURCE_COLUMN,
                    items.some(({ error }) => error) ? ERROR_COLUMN : SIZE_COLUMN,
                    DELIVERY_COLUMN,
                    mayAct && actionsOf(ask),
                  ]}
                />
              )}
              {(items.length > 0 || next !== null) && (
                <Pager
                  total={totalOf(counts.value, filters.status)}
                  actions={
                    mayAct && (
                      <BulkActions
                        chosen={chosen}
                        isFiltered={isFiltered}
                        onAsk={(action, rows) => setAsked({ action, ...(rows && { chosen: rows }) })}
                      />
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
      {isTesting && <SendDelivery onClose={() => setTesting(false)} onSent={reload} />}
      {asked !== undefined && (
        <ActOn
          {...asked}
          query={route.query}
          onClose={() => setAsked(undefined)}
          onDone={() => {
            setTicked(new Set());
            reload();
          }}
        />
      )}
    </Page>
  );
}

/** A count takes at most this share of the time of a page, because it may read very many deliveries. */
const COUNTING = 0.1;

/** The numbers of deliveries by status. `reload` counts again soon, but not all the time. */
function useCounts(query: URLSearchParams) {
  const [round, setRound] = useState(0);
  const others = new URLSearchParams(query);
  others.delete('before');
  others.delete('status');
  const data = useData<DeliveryCounts>(listQuery(others, {}, 'deliveries/counts'));
  const pace = useRef({ began: 0, took: 0, isDue: false });
  // biome-ignore lint/correctness/useExhaustiveDependencies: each value ends a count.
  useEffect(() => {
    if (pace.current.began > 0) pace.current.took = Date.now() - pace.current.began;
  }, [data.value]);
  useEffect(() => {
    if (round === 0) return;
    const timer = setTimeout(() => {
      pace.current.isDue = false;
      pace.current.began = Date.now();
      data.reload();
    }, pace.current.took / COUNTING);
    return () => clearTimeout(timer);
  }, [round, data.reload]);
  const reload = () => {
    if (pace.current.isDue) return;
    pace.current.isDue = true;
    setRound((n) => n + 1);
  };
  return { value: data.value, reload };
}

/** The total of a list in words, with `+` if there are more than were counted. */
function totalOf(counted: DeliveryCounts | undefined, status: string | undefined): string | undefined {
  if (counted === undefined) return undefined;
  const { total, counts, next } = counted;
  const count = status === undefined ? total : (counts[status] ?? 0);
  const more = next === null ? '' : '+';
  return `${count.toLocaleString('en')}${more} ${count === 1 && more === '' ? 'delivery' : 'deliveries'}`;
}

/** The statuses as tabs, each with its number of deliveries. */
function Tabs({ query, counts }: { query: URLSearchParams; counts: DeliveryCounts | undefined }) {
  const { status: current = '', before: _, ...others } = Object.fromEntries(query);
  const more = counts === undefined || counts.next === null ? '' : '+';
  return (
    <nav className="tabs" aria-label="Status">
      {['', ...STATUSES].map((status) => {
        const count = status === '' ? counts?.total : counts?.counts[status];
        return (
          <a
            key={status}
            href={linkTo('deliveries', '', { ...others, status })}
            className={status === 'dead' && count ? 'bad' : undefined}
            aria-current={status === current ? 'page' : undefined}
          >
            {status === '' ? 'all' : status}{' '}
            {count !== undefined && (
              <span className="tab-count">
                {count.toLocaleString('en')}
                {more}
              </span>
            )}
          </a>
        );
      })}
    </nav>
  );
}

/** The actions on the ticked deliveries, or on all that a filter matches. */
function BulkActions({
  chosen,
  isFiltered,
  onAsk,
}: {
  chosen: readonly DeliveryRow[];
  isFiltered: boolean;
  onAsk: (action: Action, chosen?: readonly DeliveryRow[]) => void;
}) {
  const isTicked = chosen.length > 0;
  if (!isTicked && !isFiltered)
    return <span className="note">Tick deliveries, or filter them, to act on many.</span>;
  const which = isTicked ? `${chosen.length} selected` : 'all matching';
  const on = isTicked ? chosen : undefined;
  return (
    <>
      <button type="button" className="button small" onClick={() => onAsk('replay', on)}>
        Replay {which}
      </button>
      <button type="button" className="button small danger" onClick={() => onAsk('discard', on)}>
        Discard {which}
      </button>
    </>
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
  { title: 'Attempts', className: 'number', cell: ({ attempts }) => attempts },
];

/** Shown if no delivery of the page is dead: the error needs the room. */
const SIZE_COLUMN: Column<DeliveryRow> = {
  title: 'Size',
  className: 'number minor',
  cell: ({ size }) => formatBytes(size),
};

/** Shown if a delivery of the page comes from a signed source. */
const SOURCE_COLUMN: Column<DeliveryRow> = {
  title: 'Source',
  className: 'cut',
  cell: ({ source }) => source || <span className="quiet">/webhook</span>,
};

/** Shown if a delivery of the page is dead. */
const ERROR_COLUMN: Column<DeliveryRow> = {
  title: 'Error',
  className: 'cut error-cell',
  cell: ({ error }) => error,
};

const DELIVERY_COLUMN: Column<DeliveryRow> = {
  title: 'Delivery',
  className: 'nowrap',
  cell: ({ id }) => (
    <a className="mono" href={linkTo('deliveries', id)}>
      {id.slice(0, 18)}…
    </a>
  ),
};

function actionsOf(onAct: (action: Action, row: DeliveryRow) => void): Column<DeliveryRow> {
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
              onClick={() => onAct(action, row)}
            >
              {words}
            </button>
          );
        }),
  };
}
