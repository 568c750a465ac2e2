import { useState } from 'react';
import { DOOR_TITLES, useAbout } from '../data/about.ts';
import { formatMs, formatTime } from '../data/format.ts';
import { goTo, linkTo, type Route } from '../data/route.ts';
import { useData } from '../data/use-data.ts';
import { type Column, DataTable, Loaded } from '../parts/data-table.tsx';
import { Filters } from '../parts/filters.tsx';
import { Card, Empty, Page, PauseButton, Status, type Tone } from '../parts/parts.tsx';

interface RequestRow {
  readonly number: number;
  readonly door: string;
  readonly route: string;
  readonly method: string;
  readonly status: number;
  readonly endedAt: string;
  readonly durationMs: number;
}

const STATUSES = [
  ['', 'Any'],
  ['2', '2xx'],
  ['3', '3xx'],
  ['4', '4xx'],
  ['5', '5xx'],
] as const;

const SLOW = [
  ['', 'Any'],
  ['10', 'from 10 ms'],
  ['100', 'from 100 ms'],
  ['1000', 'from 1 s'],
] as const;

/** The latest requests of all doors. */
export function Requests({ route: { query } }: { route: Route }) {
  const about = useAbout();
  const [isPaused, setPaused] = useState(false);
  const data = useData<{ readonly requests: readonly RequestRow[] }>(
    'requests',
    isPaused ? undefined : 2_000,
  );
  const [door = '', status = '', slow = ''] = ['door', 'status', 'slow'].map((name) => query.get(name) ?? '');
  const doors = (about?.doors ?? []).map(({ name }) => [name, DOOR_TITLES[name] ?? name] as const);
  return (
    <Page
      title="Requests"
      about="The last 500 requests of all doors, by route. The console's own requests are omitted."
      actions={<PauseButton isPaused={isPaused} onChange={setPaused} />}
    >
      <Filters
        filters={[
          { kind: 'choice', name: 'door', label: 'Door', options: [['', 'All'], ...doors] },
          { kind: 'choice', name: 'status', label: 'Status', options: STATUSES },
          { kind: 'choice', name: 'slow', label: 'Duration', options: SLOW },
        ]}
        values={{ door, status, slow }}
        onApply={(filters) => goTo(linkTo('requests', '', filters), true)}
      />
      <Card>
        <Loaded data={data} what="The list of requests">
          {({ requests }) => {
            const shown = requests.filter(
              (row) =>
                (door === '' || row.door === door) &&
                (status === '' || String(row.status).startsWith(status)) &&
                row.durationMs >= Number(slow),
            );
            if (shown.length > 0) {
              return (
                <DataTable
                  label="Requests"
                  rows={shown.slice(0, 200)}
                  keyOf={({ number }) => number}
                  columns={COLUMNS}
                />
              );
            }
            return (
              <Empty icon="requests" title={requests.length === 0 ? 'No requests yet' : 'Nothing matches'}>
                {requests.length === 0
                  ? 'Requests appear here as soon as a door receives one.'
                  : `None of the last ${requests.length} requests matches all filters.`}
              </Empty>
            );
          }}
        </Loaded>
      </Card>
    </Page>
  );
}

function toneOf(status: number): Tone {
  if (status >= 500) return 'bad';
  return status >= 400 ? 'warn' : 'good';
}

const COLUMNS: readonly Column<RequestRow>[] = [
  { title: 'Time', className: 'nowrap', cell: ({ endedAt }) => formatTime(endedAt) },
  { title: 'Door', cell: ({ door }) => DOOR_TITLES[door] ?? door },
  { title: 'Method', cell: ({ method }) => method },
  {
    title: 'Route',
    className: 'mono cut',
    cell: ({ route }) => (route === 'none' ? 'no route' : route),
  },
  { title: 'Status', cell: ({ status }) => <Status tone={toneOf(status)}>{status}</Status> },
  { title: 'Duration', className: 'number', cell: ({ durationMs }) => formatMs(durationMs) },
];
