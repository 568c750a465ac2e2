import { useState } from 'react';
import { act } from '../../data/api.ts';
import { formatMoment } from '../../data/format.ts';
import { goTo, linkTo, type Route } from '../../data/route.ts';
import { useData } from '../../data/use-data.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Card, Empty, Notice, Page, Waiting } from '../../parts/parts.tsx';
import { say } from '../../parts/toasts.tsx';
import { type EndpointView, pathOf, stateOf } from '../data.ts';
import { EndpointState, typesInWords } from '../endpoints.tsx';
import { Health } from './health.tsx';
import { Secrets } from './secrets.tsx';
import { Replay, SendTest } from './send.tsx';
import { SentEvents } from './sent-events.tsx';

/** One endpoint: how it is, its settings, its secret and its deliveries. */
export function Endpoint({ route }: { route: Route }) {
  const { item: id } = route;
  const { value, error, reload } = useData<EndpointView>(pathOf(id), 10_000);
  const [asked, setAsked] = useState<'remove' | 'test' | 'replay'>();
  if (value === undefined || error !== undefined) {
    return (
      <Page title="Endpoint" actions={<Back />}>
        <Card>
          {error?.status === 404 ? (
            <Empty icon="search" title="There is no such endpoint">
              It may have been removed.
            </Empty>
          ) : (
            <Waiting error={error} what="The endpoint" />
          )}
        </Card>
      </Page>
    );
  }
  const { advice, tone } = stateOf(value);
  const close = () => setAsked(undefined);

  async function enable(enabled: boolean): Promise<void> {
    try {
      await act('PATCH', pathOf(id), { enabled });
      say('good', enabled ? 'Enabled' : 'Disabled: it gets no more events');
    } catch (failure) {
      say('bad', (failure as Error).message);
    }
    reload();
  }

  return (
    <Page
      title={value.url}
      about={
        <>
          <EndpointState endpoint={value} /> {value.description}
        </>
      }
      actions={
        <>
          <Back />
          <a className="button" href={linkTo('edit', id)}>
            Edit
          </a>
          <button type="button" className="button" onClick={() => void enable(!value.enabled)}>
            <Icon name={value.enabled ? 'pause' : 'play'} />
            {value.enabled ? 'Disable' : 'Enable'}
          </button>
          <button type="button" className="button danger" onClick={() => setAsked('remove')}>
            Delete
          </button>
          <button
            type="button"
            className="button primary"
            disabled={!value.enabled}
            onClick={() => setAsked('test')}
          >
            <Icon name="send" />
            Send a test event
          </button>
        </>
      }
    >
      {advice !== undefined && <Notice tone={tone}>{advice}</Notice>}
      <Health id={id} />
      <div className="grid two">
        <Card title="Settings">
          <Settings endpoint={value} />
        </Card>
        <Secrets id={id} />
      </div>
      <SentEvents
        route={route}
        actions={
          <button
            type="button"
            className="button small"
            disabled={!value.enabled}
            onClick={() => setAsked('replay')}
          >
            <Icon name="replay" />
            Replay events
          </button>
        }
      />
      {asked === 'remove' && <Remove endpoint={value} onClose={close} />}
      {asked === 'test' && <SendTest id={id} onClose={close} />}
      {asked === 'replay' && <Replay id={id} onClose={close} />}
    </Page>
  );
}

function Back() {
  return (
    <a className="button" href="#/endpoints">
      <Icon name="back" />
      All endpoints
    </a>
  );
}

function Settings({ endpoint }: { endpoint: EndpointView }) {
  const { types, channels, filter, rate, order, transform, headers = {}, createdAt, id } = endpoint;
  const facts: readonly (readonly [title: string, text: string | undefined])[] = [
    ['Events', types === undefined ? typesInWords(types) : types.join(', ')],
    ['Channels', channels?.join(', ')],
    ['Filter', filter === undefined ? undefined : JSON.stringify(filter)],
    ['Rate', rate],
    ['Order', order],
    ['Transformation', transform],
    ...Object.entries(headers).map(([name, value]) => [name, value] as const),
    ['Created', formatMoment(createdAt)],
    ['Id', id],
  ];
  return (
    <dl className="facts">
      {facts.map(
        ([title, text]) =>
          text !== undefined && (
            <div key={title}>
              <dt>{title}</dt>
              <dd className="break">{text}</dd>
            </div>
          ),
      )}
    </dl>
  );
}

/** Asks before an endpoint is removed. */
function Remove({ endpoint: { id, url }, onClose }: { endpoint: EndpointView; onClose: () => void }) {
  const [problem, setProblem] = useState('');
  async function remove(): Promise<void> {
    try {
      await act('DELETE', pathOf(id));
      say('good', 'The endpoint is deleted');
      goTo('#/endpoints');
    } catch (error) {
      setProblem((error as Error).message);
    }
  }
  return (
    <Dialog
      title="Delete this endpoint?"
      submit="Delete"
      tone="danger"
      onSubmit={() => void remove()}
      onClose={onClose}
    >
      <p>
        <strong className="break">{url}</strong> gets no more events, also none that wait for a retry. Its
        secret is lost. To pause it, disable it instead.
      </p>
      {problem !== '' && <Notice tone="bad">{problem}</Notice>}
    </Dialog>
  );
}
