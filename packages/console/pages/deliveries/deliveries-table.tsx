import { act } from '../../data/api.ts';
import { type Action, type DeliveryRow, isActionable, statusTone } from '../../data/deliveries.ts';
import { formatBytes, formatMoment } from '../../data/format.ts';
import { linkTo } from '../../data/route.ts';
import { Status, Table } from '../../parts/parts.tsx';
import { say } from '../../parts/toasts.tsx';

const DONE: Readonly<Record<Action, string>> = { replay: 'Replay requested', discard: 'Discarded' };

/** Replays or discards one delivery and shows the result. */
export async function actOn(id: string, action: Action, onDone: () => void): Promise<void> {
  try {
    await act('POST', `deliveries/${encodeURIComponent(id)}`, { action });
    say('good', `${DONE[action]}: ${id}`);
  } catch (error) {
    say('bad', (error as Error).message);
  }
  onDone();
}

export function DeliveriesTable({
  items,
  mayAct,
  onDone,
}: {
  items: readonly DeliveryRow[];
  mayAct: boolean;
  onDone: () => void;
}) {
  return (
    <Table label="Deliveries">
      <thead>
        <tr>
          <th scope="col">Received</th>
          <th scope="col">Status</th>
          <th scope="col">Event</th>
          <th scope="col">Source</th>
          <th scope="col" className="number">
            Attempts
          </th>
          <th scope="col" className="number">
            Size
          </th>
          <th scope="col">Delivery</th>
          {mayAct && (
            <th scope="col">
              <span className="unseen">Actions</span>
            </th>
          )}
        </tr>
      </thead>
      <tbody>
        {items.map((item) => (
          <tr key={item.id}>
            <td className="nowrap">{formatMoment(item.receivedAt)}</td>
            <td>
              <Status tone={statusTone(item.status)}>{item.status}</Status>
            </td>
            <td className="cut">
              {item.event ?? <span className="quiet">none</span>}
              {item.senderEvent !== item.event && <span className="quiet"> {item.senderEvent}</span>}
            </td>
            <td className="cut">{item.source || <span className="quiet">/webhook</span>}</td>
            <td className="number">{item.attempts}</td>
            <td className="number">{formatBytes(item.size)}</td>
            <td className="nowrap">
              <a className="mono" href={linkTo('deliveries', item.id)}>
                {item.id.slice(0, 18)}…
              </a>
            </td>
            {mayAct && (
              <td className="row-actions">
                {(['replay', 'discard'] as const).map(
                  (action) =>
                    isActionable(action, item) && (
                      <button
                        key={action}
                        type="button"
                        className="button small"
                        aria-label={`${action === 'replay' ? 'Replay' : 'Discard'} ${item.id}`}
                        onClick={() => void actOn(item.id, action, onDone)}
                      >
                        {action === 'replay' ? 'Replay' : 'Discard'}
                      </button>
                    ),
                )}
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </Table>
  );
}
