import { shownCount } from '../../data/deliveries.ts';
import { type EndpointCounts, type EndpointRow, stateOf } from '../../data/endpoints.ts';
import { formatMoment, shortError } from '../../data/format.ts';
import { linkTo, type Route } from '../../data/route.ts';
import { useData, usePaged } from '../../data/use-data.ts';
import { type Column, DataTable, Loaded, Pager } from '../../parts/data-table.tsx';
import { type Filter, Filters } from '../../parts/filters.tsx';
import { Card, Empty, Page, Status } from '../../parts/parts.tsx';
import { Endpoint } from './endpoint.tsx';

interface EndpointList {
  readonly items: readonly EndpointRow[];
  readonly next: string | null;
}

/** The states of endpoints with their names, those that need somebody first. */
const STATES = [
  ['disabled', 'disabled for failing'],
  ['failing', 'failing'],
  ['manual', 'disabled by hand'],
  ['working', 'working'],
] as const;

/** The endpoints of all tenants that webhooks are sent to. */
export function Endpoints({ route }: { route: Route }) {
  return route.item === '' ? <List route={route} /> : <Endpoint key={route.item} id={route.item} />;
}

const FILTERS: readonly Filter[] = [{ kind: 'text', name: 'tenant', label: 'Tenant', hint: 'acme' }];

/** Interval in which a list is read anew, in milliseconds. */
const EVERY = 10_000;

function List({ route }: { route: Route }) {
  const list = usePaged<EndpointList>(route, 'after', (query) => `webhookendpoints?${query}`, EVERY);
  const { filters, isFirst, turnTo } = list;
  const { tenant } = filters;
  const of = new URLSearchParams(tenant === undefined ? {} : { tenant });
  const counts = useData<EndpointCounts>(`webhookendpoints/counts?${of}`, EVERY);
  const isFiltered = Object.keys(filters).length > 0;
  return (
    <Page
      title="Endpoints"
      about="The addresses that webhooks are sent to, of all tenants, with what their last 50 events say."
    >
      <Tabs filters={filters} counts={counts.value?.counts} />
      <Filters
        filters={FILTERS}
        values={filters}
        onApply={(given) => list.apply({ ...given, ...(filters.state && { state: filters.state }) })}
      />
      <Card>
        <Loaded data={list} what="The list of endpoints">
          {({ items, next }) => (
            <>
              {items.length === 0 ? (
                <Empty icon="send" title={isFiltered ? 'Nothing matches' : 'No endpoints yet'}>
                  {isFiltered
                    ? 'No endpoint matches all filters.'
                    : 'The endpoints of your customers appear here as soon as they are created.'}
                </Empty>
              ) : (
                <DataTable
                  label="Endpoints"
                  rows={items}
                  keyOf={({ id }) => id}
                  hrefOf={({ id }) => linkTo('endpoints', id)}
                  columns={COLUMNS}
                />
              )}
              {(!isFirst || next !== null) && (
                <Pager
                  pages={[
                    { title: 'First', onGo: isFirst ? undefined : () => turnTo() },
                    { title: 'Next', onGo: next === null ? undefined : () => turnTo(next) },
                  ]}
                />
              )}
            </>
          )}
        </Loaded>
      </Card>
    </Page>
  );
}

/** The states as tabs, each with its number of endpoints. */
function Tabs({
  filters: { state: current = '', ...others },
  counts,
}: {
  filters: Readonly<Record<string, string>>;
  counts: EndpointCounts['counts'] | undefined;
}) {
  const total = counts && Object.values(counts).reduce((sum, count) => sum + count, 0);
  return (
    <nav className="tabs" aria-label="State">
      {[['', 'all'] as const, ...STATES].map(([state, words]) => {
        const count = state === '' ? total : counts?.[state];
        return (
          <a
            key={state}
            href={linkTo('endpoints', '', { ...others, state })}
            className={state === 'disabled' && count ? 'bad' : undefined}
            aria-current={state === current ? 'page' : undefined}
          >
            {words} {count !== undefined && <span className="tab-count">{shownCount(count)}</span>}
          </a>
        );
      })}
    </nav>
  );
}

const moment = (at: string | null) =>
  at === null ? <span className="quiet">–</span> : <time>{formatMoment(at)}</time>;

const COLUMNS: readonly Column<EndpointRow>[] = [
  {
    title: 'Address',
    isRowHead: true,
    className: 'break',
    cell: ({ id, url }) => <a href={linkTo('endpoints', id)}>{url}</a>,
  },
  {
    title: 'Tenant',
    className: 'break',
    cell: ({ tenant }) => <a href={linkTo('endpoints', '', { tenant })}>{tenant}</a>,
  },
  {
    title: 'State',
    cell: (endpoint) => {
      const { tone, words, since } = stateOf(endpoint);
      return (
        <>
          <Status tone={tone}>{words}</Status>
          {since !== undefined && (
            <>
              <br />
              <small>since {since}</small>
            </>
          )}
        </>
      );
    },
  },
  { title: 'Last success', className: 'nowrap', cell: ({ recent }) => moment(recent.lastSuccessAt) },
  {
    title: 'Last failure',
    cell: ({ recent: { lastFailureAt, error } }) => (
      <>
        {moment(lastFailureAt)}
        {error && (
          <>
            <br />
            <small>{shortError(error)}</small>
          </>
        )}
      </>
    ),
  },
  { title: 'Done', className: 'number', cell: ({ recent }) => recent.done },
  {
    title: 'Dead',
    className: 'number',
    cell: ({ recent: { dead } }) => (dead > 0 ? <strong className="bad">{dead}</strong> : dead),
  },
];
