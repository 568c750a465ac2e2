import { useMemo, useState } from 'react';
import { useAbout } from '../data/about.ts';
import { useLive } from '../data/api.ts';
import {
  asksFirst,
  type DeliveryView,
  isActionable,
  statusTone,
  useUntilSettled,
} from '../data/deliveries.ts';
import { formatBytes, formatMoment } from '../data/format.ts';
import { useData } from '../data/use-data.ts';
import { ActOn, actOn } from '../deliveries/act-on.tsx';
import { bodyOf, RawRequest } from '../deliveries/request.tsx';
import { type Edited, SendDelivery } from '../deliveries/send.tsx';
import { Timeline } from '../deliveries/timeline.tsx';
import { Icon } from '../parts/icon.tsx';
import { JsonTree } from '../parts/json-tree.tsx';
import { Card, Empty, Notice, Page, Segments, Status, Waiting } from '../parts/parts.tsx';

/** One delivery: its content, its jobs and their attempts. */
export function Delivery({ id }: { id: string }) {
  const about = useAbout();
  const { value, error, reload } = useData<DeliveryView>(`deliveries/${encodeURIComponent(id)}?body=base64`);
  const [isAsking, setAsking] = useState(false);
  const [isEditing, setEditing] = useState(false);
  const edited = useMemo(() => editable(value), [value]);
  const maySend = about?.actions === true && about.endpoints.includes('test-deliveries');
  useLive('deliveries', { deliveries: reload });
  useUntilSettled(value === undefined ? [] : [value], reload);
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
          {maySend && edited !== undefined && (
            <button type="button" className="button" onClick={() => setEditing(true)}>
              <Icon name="send" />
              Edit and send again
            </button>
          )}
          {about?.actions === true && isActionable('discard', value) && (
            <button type="button" className="button danger" onClick={() => void actOn(id, 'discard', reload)}>
              Discard
            </button>
          )}
          {about?.actions === true && isActionable('replay', value) && (
            <button
              type="button"
              className="button primary"
              onClick={() =>
                asksFirst('replay', value) ? setAsking(true) : void actOn(id, 'replay', reload)
              }
            >
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
        </Card>
        <Card title="Timeline" note={`${value.attempts} ${value.attempts === 1 ? 'attempt' : 'attempts'}`}>
          <Timeline delivery={value} />
        </Card>
      </div>
      <RawRequest delivery={value} />
      <Card title="Body">
        <DeliveryBody delivery={value} />
      </Card>
      {isAsking && (
        <ActOn
          action="replay"
          chosen={[value]}
          query={new URLSearchParams()}
          onClose={() => setAsking(false)}
          onDone={reload}
        />
      )}
      {isEditing && edited !== undefined && (
        <SendDelivery edited={edited} onClose={() => setEditing(false)} onSent={reload} />
      )}
    </Page>
  );
}

/** The delivery as it can be edited; undefined if its body is hidden, cut or no text. */
function editable(delivery: DeliveryView | undefined): Edited | undefined {
  const body = delivery?.bodyTruncated === true ? undefined : delivery && bodyOf(delivery);
  if (delivery === undefined || body?.text === undefined) return undefined;
  const { source, senderEvent, event, contentType } = delivery;
  return { source, event: senderEvent ?? event ?? '', body: body.text, contentType: contentType ?? '' };
}

type Form = 'tree' | 'fields' | 'text' | 'bytes';

const TITLES: Readonly<Record<Form, string>> = {
  tree: 'Tree',
  fields: 'Form',
  text: 'Text',
  bytes: 'Bytes',
};

/** Maximum number of bytes shown. */
const MAX_BYTES = 4_096;

/** The body of a delivery in the views that suit it. Its content is always shown as text. */
function DeliveryBody({ delivery }: { delivery: DeliveryView }) {
  const forms = useMemo(() => formsOf(delivery), [delivery]);
  const [picked, setPicked] = useState<Form>();
  const kinds = Object.keys(forms) as readonly Form[];
  const shown = picked !== undefined && picked in forms ? picked : kinds[0];
  if (shown === undefined) {
    return (
      <Empty icon="lock" title="The body is not shown">
        MANAGEMENT_SHOW_DETAILS hides the bodies of deliveries.
      </Empty>
    );
  }
  return (
    <div className="card-body">
      <Segments
        label="How the body is shown"
        options={kinds.map((kind) => [kind, TITLES[kind]])}
        value={shown}
        onPick={(kind) => setPicked(kind as Form)}
      />
      {delivery.bodyTruncated === true && (
        <Notice tone="quiet">The body is longer; "portico deliveries show" has all of it.</Notice>
      )}
      <div className="body">
        <Shown form={shown} forms={forms} />
      </div>
    </div>
  );
}

interface Forms {
  readonly tree?: unknown;
  readonly fields?: readonly (readonly [string, string])[];
  readonly text?: string;
  readonly bytes?: Uint8Array;
}

function formsOf(delivery: DeliveryView): Forms {
  const { contentType } = delivery;
  const body = bodyOf(delivery);
  if (body === undefined) return {};
  const { bytes, text } = body;
  if (text === undefined) return { bytes };
  const isForm = contentType?.toLowerCase().startsWith('application/x-www-form-urlencoded') === true;
  const json = isForm ? undefined : jsonOf(text);
  return { ...json, ...(isForm && { fields: [...new URLSearchParams(text)] }), text, bytes };
}

function jsonOf(text: string): { readonly tree: unknown } | undefined {
  try {
    return { tree: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

function Shown({ form, forms }: { form: Form; forms: Forms }) {
  switch (form) {
    case 'tree':
      return <JsonTree value={forms.tree} />;
    case 'fields':
      return (
        <dl className="facts">
          {forms.fields?.map(([name, value], i) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a form may repeat a name, and its order is fixed.
            <div key={i}>
              <dt>{name}</dt>
              <dd className="break mono">{value}</dd>
            </div>
          ))}
        </dl>
      );
    case 'text':
      return <pre className="wrap">{forms.text}</pre>;
    case 'bytes':
      return <pre>{hexOf(forms.bytes ?? new Uint8Array())}</pre>;
  }
}

function hexOf(bytes: Uint8Array): string {
  const rows: string[] = [];
  for (let at = 0; at < Math.min(bytes.length, MAX_BYTES); at += 16) {
    const row = [...bytes.subarray(at, at + 16)];
    const hex = row.map((byte) => byte.toString(16).padStart(2, '0')).join(' ');
    const text = row.map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : '.')).join('');
    rows.push(`${at.toString(16).padStart(6, '0')}  ${hex.padEnd(47)}  ${text}`);
  }
  if (bytes.length > MAX_BYTES) rows.push(`… ${bytes.length - MAX_BYTES} more bytes`);
  return rows.join('\n');
}
