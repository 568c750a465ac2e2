import { type About, DOOR_TITLES } from '../../data/about.ts';
import { formatValue } from '../../data/format.ts';
import type { HistoryData } from '../../data/history.ts';
import { recent, recentSpan } from '../../data/recent.ts';
import { Card, Table } from '../../parts/parts.tsx';

/** The doors with their addresses and current figures. */
export function Doors({ doors, history }: { doors: About['doors']; history: HistoryData | undefined }) {
  return (
    <Card title="Doors" note={recentSpan(history)} className="doors">
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
                <span className="door">{DOOR_TITLES[name] ?? name}</span>
                {page ? <a href={url}>{url}</a> : <span className="quiet">{url}</span>}
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
  const value = recent(history, column, how);
  if (value === undefined) return <td className="number quiet">–</td>;
  const unit = history?.columns[column]?.unit ?? '';
  return <td className={`number ${alarm && value > 0 ? 'bad' : ''}`}>{formatValue(value, unit)}</td>;
}
