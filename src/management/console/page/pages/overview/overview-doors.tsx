import { type About, DOOR_TITLES } from '../../data/about.ts';
import { formatValue } from '../../data/format.ts';
import type { HistoryData } from '../../data/history.ts';
import { Card, Table } from '../../parts/parts.tsx';

/** The values of the last minute. */
const POINTS = 20;

/** The doors with their addresses and what they answer now. */
export function Doors({ doors, history }: { doors: About['doors']; history: HistoryData | undefined }) {
  return (
    <Card title="Doors" note="last minute" className="doors">
      <Table label="Doors">
        <thead>
          <tr>
            <th scope="col">Door</th>
            <th scope="col" className="number">
              Requests
            </th>
            <th scope="col" className="number">
              Errors
            </th>
            <th scope="col" className="number">
              p50
            </th>
            <th scope="col" className="number">
              p99
            </th>
          </tr>
        </thead>
        <tbody>
          {doors.map(({ name, url, page }) => (
            <tr key={name}>
              <th scope="row">
                {DOOR_TITLES[name] ?? name}
                <br />
                {page ? <a href={url}>{url}</a> : <code>{url}</code>}
              </th>
              <Latest history={history} column={`${name}.requests`} how="mean" />
              <Latest history={history} column={`${name}.errors`} how="mean" alarm />
              <Latest history={history} column={`${name}.p50`} how="mean" />
              <Latest history={history} column={`${name}.p99`} how="peak" />
            </tr>
          ))}
        </tbody>
      </Table>
    </Card>
  );
}

function Latest({
  history,
  column,
  how,
  alarm = false,
}: {
  history: HistoryData | undefined;
  column: string;
  how: 'mean' | 'peak';
  alarm?: boolean;
}) {
  const { unit = '', values = [] } = history?.columns[column] ?? {};
  const known = values.slice(-POINTS).filter((value) => value !== null);
  if (known.length === 0) return <td className="number quiet">–</td>;
  const value =
    how === 'peak' ? Math.max(...known) : known.reduce((sum, each) => sum + each, 0) / known.length;
  return <td className={`number ${alarm && value > 0 ? 'bad' : ''}`}>{formatValue(value, unit)}</td>;
}
