import type { ReactNode } from 'react';
import { formatMoment, shortError } from '../../data/format.ts';
import { linkTo, type Route } from '../../data/route.ts';
import { usePaged } from '../../data/use-data.ts';
import { type Column, DataTable, Loaded, Pager } from '../../parts/data-table.tsx';
import { Card, Empty, Segments, Status } from '../../parts/parts.tsx';
import { type List, pathOf, SENT_FILTERS, type Sent, sentState } from '../data.ts';

interface SentRow extends Sent {
  readonly event: string;
  readonly type: string;
}

const eventColumn = (endpoint: string): Column<SentRow> => ({
  title: 'Event',
  isRowHead: true,
  className: 'break',
  cell: ({ event, type }) => <a href={linkTo('delivery', event, { endpoint })}>{type}</a>,
});

const COLUMNS: readonly Column<SentRow>[] = [
  {
    title: 'Status',
    cell: (sent) => {
      const { tone, words } = sentState(sent);
      return <Status tone={tone}>{words}</Status>;
    },
  },
  { title: 'Published', cell: ({ publishedAt }) => <time>{formatMoment(publishedAt)}</time> },
  { title: 'Attempts', className: 'number', cell: ({ attempts }) => attempts },
];

const NEXT_COLUMN: Column<SentRow> = {
  title: 'Next attempt',
  cell: ({ nextAttemptAt }) => (nextAttemptAt === null ? '–' : <time>{formatMoment(nextAttemptAt)}</time>),
};

const ERROR_COLUMN: Column<SentRow> = {
  title: 'Error',
  className: 'error-cell',
  cell: ({ error }) => (error === null ? '–' : shortError(error)),
};

/** The deliveries to an endpoint, newest first, by status. */
export function SentEvents({ route, actions }: { route: Route; actions: ReactNode }) {
  const { item: endpoint, query } = route;
  const list = usePaged<List<SentRow>>(
    route,
    'before',
    ({ size }) => `${pathOf(endpoint)}/events?limit=25${size > 0 ? `&${query}` : ''}`,
    5_000,
  );
  const { isFirst, turnTo, filters } = list;
  return (
    <Card title="Deliveries" note={actions}>
      <div className="card-body">
        <Segments
          label="Deliveries by status"
          options={SENT_FILTERS}
          value={filters.status ?? ''}
          onPick={(status) => list.apply(status === '' ? {} : { status })}
        />
      </div>
      <Loaded data={list} what="The list of deliveries">
        {({ items, next }) => (
          <>
            {items.length === 0 ? (
              <Empty
                icon="deliveries"
                title={filters.status === undefined ? 'Nothing was sent yet' : 'Nothing matches'}
              />
            ) : (
              <DataTable
                label="Deliveries"
                rows={items}
                keyOf={({ event }) => event}
                hrefOf={({ event }) => linkTo('delivery', event, { endpoint })}
                columns={[
                  eventColumn(endpoint),
                  ...COLUMNS,
                  items.some(({ nextAttemptAt }) => nextAttemptAt !== null) && NEXT_COLUMN,
                  items.some(({ error }) => error !== null) && ERROR_COLUMN,
                ]}
              />
            )}
            {(!isFirst || next !== null) && (
              <Pager
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
  );
}
