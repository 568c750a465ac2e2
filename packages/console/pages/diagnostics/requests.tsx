import { useState } from 'react';
import { DOOR_TITLES, useAbout } from '../../data/about.ts';
import { formatMs, formatTime } from '../../data/format.ts';
import { goTo, linkTo, type Route } from '../../data/route.ts';
import { useData } from '../../data/use-data.ts';
import { Icon } from '../../parts/icon.tsx';
import { Card, Empty, Page, Status, Table, type Tone, Waiting } from '../../parts/parts.tsx';

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
  const { value, error } = useData<{ readonly requests: readonly RequestRow[] }>(
    'requests',
    isPaused ? undefined : 2_000,
  );
  const [door = '', status = '', slow = ''] = ['door', 'status', 'slow'].map((name) => query.get(name) ?? '');
  const shown = (value?.requests ?? []).filter(
    (row) =>
      (door === '' || row.door === door) &&
      (status === '' || String(row.status).startsWith(status)) &&
      row.durationMs >= Number(slow),
  );
  const pick = (name: string, picked: string) =>
    goTo(linkTo('requests', '', { ...Object.fromEntries(query), [name]: picked || undefined }), true);
  const choice = (name: string, label: string, options: readonly (readonly [string, string])[]) => (
    <label className="field">
      <span>{label}</span>
      <select value={query.get(name) ?? ''} onChange={({ currentTarget }) => pick(name, currentTarget.value)}>
        {options.map(([each, text]) => (
          <option key={each} value={each}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
  const doors = (about?.doors ?? []).map(({ name }) => [name, DOOR_TITLES[name] ?? name] as const);
  return (
    <Page
      title="Requests"
      about="The last 500 requests of all doors, by route. The console's own requests are omitted."
      actions={
        <button type="button" className="button" aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
          <Icon name={isPaused ? 'play' : 'pause'} />
          {isPaused ? 'Resume' : 'Pause'}
        </button>
      }
    >
      <form className="filters" aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
        {choice('door', 'Door', [['', 'All'], ...doors])}
        {choice('status', 'Status', STATUSES)}
        {choice('slow', 'Duration', SLOW)}
      </form>
      <Card>
        {value === undefined || error !== undefined ? (
          <Waiting error={error} what="The list of requests" />
        ) : shown.length === 0 ? (
          <Empty icon="requests" title={value.requests.length === 0 ? 'No requests yet' : 'Nothing matches'}>
            {value.requests.length === 0
              ? 'Requests appear here as soon as a door receives one.'
              : `None of the last ${value.requests.length} requests matches all filters.`}
          </Empty>
        ) : (
          <Table label="Requests">
            <thead>
              <tr>
                <th scope="col">Time</th>
                <th scope="col">Door</th>
                <th scope="col">Method</th>
                <th scope="col">Route</th>
                <th scope="col">Status</th>
                <th scope="col" className="number">
                  Duration
                </th>
              </tr>
            </thead>
            <tbody>
              {shown.slice(0, 200).map((row) => (
                <tr key={row.number}>
                  <td className="nowrap">{formatTime(row.endedAt)}</td>
                  <td>{DOOR_TITLES[row.door] ?? row.door}</td>
                  <td>{row.method}</td>
                  <td className="mono cut">{row.route === 'none' ? 'no route' : row.route}</td>
                  <td>
                    <Status tone={toneOf(row.status)}>{row.status}</Status>
                  </td>
                  <td className="number">{formatMs(row.durationMs)}</td>
                </tr>
              ))}
            </tbody>
          </Table>
        )}
      </Card>
    </Page>
  );
}

function toneOf(status: number): Tone {
  if (status >= 500) return 'bad';
  return status >= 400 ? 'warn' : 'good';
}
