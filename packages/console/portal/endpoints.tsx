import { formatMoment } from '../data/format.ts';
import { linkTo } from '../data/route.ts';
import { type Column, DataTable, Loaded } from '../parts/data-table.tsx';
import { Card, Empty, Page, Status } from '../parts/parts.tsx';
import { type EndpointView, stateOf, useAll } from './data.ts';

const COLUMNS: readonly Column<EndpointView>[] = [
  {
    title: 'URL',
    isRowHead: true,
    className: 'break',
    cell: ({ id, url }) => <a href={linkTo('endpoints', id)}>{url}</a>,
  },
  { title: 'State', cell: (endpoint) => <EndpointState endpoint={endpoint} /> },
  { title: 'Events', className: 'break', cell: ({ types }) => typesInWords(types) },
  { title: 'Description', className: 'break', cell: ({ description = '' }) => description },
  { title: 'Added', className: 'nowrap', cell: ({ createdAt }) => <time>{formatMoment(createdAt)}</time> },
];

/** The types that an endpoint gets, in words. */
export function typesInWords(types: readonly string[] | undefined): string {
  if (types === undefined || types.includes('*')) return 'all events';
  const more = types.length - 3;
  return more > 0 ? `${types.slice(0, 3).join(', ')} and ${more} more` : types.join(', ');
}

/** The state of an endpoint, as a colour and a word. */
export function EndpointState({ endpoint }: { endpoint: EndpointView }) {
  const { tone, words } = stateOf(endpoint);
  return <Status tone={tone}>{words}</Status>;
}

/** The endpoints of the tenant. */
export function Endpoints() {
  const list = useAll<EndpointView>('endpoints', 10_000);
  return (
    <Page
      title="Endpoints"
      about="Each endpoint is a URL of yours that events are sent to."
      actions={
        <a className="button primary" href="#/new">
          Add an endpoint
        </a>
      }
    >
      <Card>
        <Loaded data={list} what="The list of endpoints">
          {(endpoints) =>
            endpoints.length === 0 ? (
              <Empty icon="send" title="There are no endpoints yet">
                Add the URL of a receiver. It gets the events that are published from then on.
              </Empty>
            ) : (
              <DataTable
                label="Endpoints"
                rows={endpoints}
                keyOf={({ id }) => id}
                hrefOf={({ id }) => linkTo('endpoints', id)}
                columns={COLUMNS}
              />
            )
          }
        </Loaded>
      </Card>
    </Page>
  );
}
