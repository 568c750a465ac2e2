import { formatMoment } from '../data/format.ts';
import { linkTo, type Route } from '../data/route.ts';
import { useData, usePaged } from '../data/use-data.ts';
import { copy } from '../parts/copy.ts';
import { DataTable, Loaded, Pager } from '../parts/data-table.tsx';
import { Filters } from '../parts/filters.tsx';
import { Icon } from '../parts/icon.tsx';
import { JsonTree } from '../parts/json-tree.tsx';
import { Card, Empty, Page, Status, Waiting } from '../parts/parts.tsx';
import { type EndpointView, type EventRow, type EventView, type List, sentState, useAll } from './data.ts';

/** The events of the tenant, or one of them. */
export function Events({ route }: { route: Route }) {
  return route.item === '' ? <EventList route={route} /> : <Event id={route.item} />;
}

function EventList({ route }: { route: Route }) {
  const list = usePaged<List<EventRow>>(route, 'before', (query) => `events?${query}`, 10_000);
  const { isFirst, turnTo, filters } = list;
  return (
    <Page title="Events" about="All events that were published to you, sent to endpoints or not.">
      <Filters
        filters={[{ name: 'type', label: 'Event type', kind: 'text', hint: 'invoice.paid', isWide: true }]}
        values={filters}
        onApply={list.apply}
      />
      <Card>
        <Loaded data={list} what="The list of events">
          {({ items, next }) => (
            <>
              {items.length === 0 ? (
                <Empty
                  icon="deliveries"
                  title={filters.type === undefined ? 'There are no events yet' : 'Nothing matches'}
                />
              ) : (
                <DataTable
                  label="Events"
                  rows={items}
                  keyOf={({ id }) => id}
                  hrefOf={({ id }) => linkTo('events', id)}
                  columns={[
                    {
                      title: 'Event type',
                      isRowHead: true,
                      className: 'break',
                      cell: ({ id, type }) => <a href={linkTo('events', id)}>{type}</a>,
                    },
                    {
                      title: 'Published',
                      cell: ({ publishedAt }) => <time>{formatMoment(publishedAt)}</time>,
                    },
                    { title: 'Id', className: 'mono break', cell: ({ id }) => id },
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
    </Page>
  );
}

/** One event: the endpoints that it was sent to, and its body. */
function Event({ id }: { id: string }) {
  const { value, error } = useData<EventView>(`events/${encodeURIComponent(id)}`, 5_000);
  const endpoints = useAll<EndpointView>('endpoints');
  const urlOf = (each: string) => endpoints.value?.find((known) => known.id === each)?.url ?? each;
  const back = (
    <a className="button" href="#/events">
      <Icon name="back" />
      All events
    </a>
  );
  if (value === undefined || error !== undefined) {
    return (
      <Page title="Event" actions={back}>
        <Card>
          {error?.status === 404 ? (
            <Empty icon="search" title="There is no such event">
              It may have been deleted at the end of its retention.
            </Empty>
          ) : (
            <Waiting error={error} what="The event" />
          )}
        </Card>
      </Page>
    );
  }
  return (
    <Page
      title={value.type}
      about={
        <>
          <time>{formatMoment(value.publishedAt)}</time> <span className="mono break">{id}</span>
        </>
      }
      actions={back}
    >
      <div className="grid two">
        <Card title="Sent to">
          {value.endpoints.length === 0 ? (
            <Empty icon="send" title="Sent to no endpoint">
              No endpoint wanted it when it was published. Replay sends it to one that wants it now.
            </Empty>
          ) : (
            <DataTable
              label="Endpoints"
              rows={value.endpoints}
              keyOf={({ endpoint }) => endpoint}
              hrefOf={({ endpoint }) => linkTo('delivery', id, { endpoint })}
              columns={[
                {
                  title: 'Endpoint',
                  isRowHead: true,
                  className: 'break',
                  cell: ({ endpoint }) => (
                    <a href={linkTo('delivery', id, { endpoint })}>{urlOf(endpoint)}</a>
                  ),
                },
                {
                  title: 'Status',
                  cell: (sent) => {
                    const { tone, words } = sentState(sent);
                    return <Status tone={tone}>{words}</Status>;
                  },
                },
              ]}
            />
          )}
        </Card>
        <EventBody event={value} />
      </div>
    </Page>
  );
}

/** The body of an event, as it is sent. */
export function EventBody({ event: { body, id } }: { event: EventView }) {
  return (
    <Card
      title="Body"
      note={
        <button
          type="button"
          className="button small"
          onClick={() => void copy(JSON.stringify(body, null, 2), 'Copied')}
        >
          <Icon name="copy" />
          Copy as JSON
        </button>
      }
    >
      <div className="card-body">
        <p className="note">
          webhook-id <span className="mono break">{id}</span>
        </p>
        <div className="body">
          <JsonTree value={body} />
        </div>
      </div>
    </Card>
  );
}
