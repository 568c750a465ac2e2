import { useAbout } from '../../data/about.ts';
import { type DeliveryView, isActionable, statusTone } from '../../data/deliveries.ts';
import { formatBytes, formatMoment } from '../../data/format.ts';
import { useLive } from '../../data/live.ts';
import { useData } from '../../data/use-data.ts';
import { Icon } from '../../parts/icon.tsx';
import { Card, Empty, Page, Status, Waiting } from '../../parts/parts.tsx';
import { actOn } from './deliveries-table.tsx';
import { DeliveryBody } from './delivery-body.tsx';
import { Timeline } from './delivery-timeline.tsx';

/** One delivery: its content, its jobs and their attempts. */
export function Delivery({ id }: { id: string }) {
  const about = useAbout();
  const { value, error, reload } = useData<DeliveryView>(`deliveries/${encodeURIComponent(id)}?body=base64`);
  useLive('deliveries', { deliveries: reload });
  const back = (
    <a className="button" href="#/deliveries">
      <Icon name="back" />
      All deliveries
    </a>
  );
  if (value === undefined || error !== undefined) {
    return (
      <Page title="Delivery" actions={back}>
        <Card>
          {error?.status === 404 ? (
            <Empty icon="search" title="There is no such delivery">
              It may have been deleted at the end of its retention.
            </Empty>
          ) : (
            <Waiting error={error} what="The delivery" />
          )}
        </Card>
      </Page>
    );
  }
  return (
    <Page
      title={value.event ?? 'Delivery without an event'}
      about={
        <>
          <Status tone={statusTone(value.status)}>{value.status}</Status>{' '}
          <span className="mono break">{value.id}</span>
        </>
      }
      actions={
        <>
          {back}
          {about?.actions === true && isActionable('discard', value) && (
            <button type="button" className="button danger" onClick={() => void actOn(id, 'discard', reload)}>
              Discard
            </button>
          )}
          {about?.actions === true && isActionable('replay', value) && (
            <button type="button" className="button primary" onClick={() => void actOn(id, 'replay', reload)}>
              <Icon name="replay" />
              Replay
            </button>
          )}
        </>
      }
    >
      <div className="grid two detail">
        <Card title="Received">
          <dl className="facts">
            <dt>When</dt>
            <dd>{formatMoment(value.receivedAt)}</dd>
            <dt>Source</dt>
            <dd className="break">{value.source || '/webhook'}</dd>
            <dt>Event</dt>
            <dd className="break">{value.event ?? 'none'}</dd>
            {value.senderEvent !== value.event && (
              <>
                <dt>Sender's name</dt>
                <dd className="break">{value.senderEvent}</dd>
              </>
            )}
            <dt>Content type</dt>
            <dd className="break">{value.contentType ?? 'none'}</dd>
            <dt>Size</dt>
            <dd>{formatBytes(value.size)}</dd>
          </dl>
          {value.headers !== undefined && Object.keys(value.headers).length > 0 && (
            <Headers headers={value.headers} />
          )}
        </Card>
        <Card title="Timeline" note={`${value.attempts} ${value.attempts === 1 ? 'attempt' : 'attempts'}`}>
          <Timeline delivery={value} />
        </Card>
      </div>
      <Card title="Body">
        <DeliveryBody delivery={value} />
      </Card>
    </Page>
  );
}

function Headers({ headers }: { headers: NonNullable<DeliveryView['headers']> }) {
  return (
    <>
      <h3 className="card-part">Headers</h3>
      <dl className="facts mono">
        {Object.entries(headers).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd className="break">{value}</dd>
          </div>
        ))}
      </dl>
    </>
  );
}
