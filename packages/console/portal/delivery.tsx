import { useState } from 'react';
import { act } from '../data/api.ts';
import type { Attempt } from '../data/deliveries.ts';
import { formatMoment, shortError } from '../data/format.ts';
import { linkTo, type Route } from '../data/route.ts';
import { useData } from '../data/use-data.ts';
import { Steps } from '../deliveries/timeline.tsx';
import { Icon } from '../parts/icon.tsx';
import { Card, Empty, Page, Status, Waiting } from '../parts/parts.tsx';
import { say } from '../parts/toasts.tsx';
import { type EndpointView, type EventView, isOpen, pathOf, type Sent, sentState } from './data.ts';
import { EventBody } from './events.tsx';

/** An event at one endpoint: its attempts, its body, and a way to send it again. */
export function Delivery({ route: { item, query } }: { route: Route }) {
  const id = query.get('endpoint') ?? '';
  const path = `${pathOf(id)}/events/${encodeURIComponent(item)}`;
  const [isSettled, setSettled] = useState(false);
  const every = isSettled ? 10_000 : 2_000;
  const event = useData<EventView>(`events/${encodeURIComponent(item)}`, every);
  const attempts = useData<{ readonly items: readonly Attempt[] }>(`${path}/attempts`, every);
  const endpoint = useData<EndpointView>(pathOf(id));
  const { value } = event;
  const sent = value?.endpoints.find((each) => each.endpoint === id);
  if (sent !== undefined && isOpen(sent) === isSettled) setSettled(!isSettled);

  async function resend(): Promise<void> {
    try {
      await act('POST', `${path}/resend`);
      say('good', 'The event is sent again');
    } catch (error) {
      say('bad', (error as Error).message);
    }
    event.reload();
    attempts.reload();
  }

  const back = (
    <a className="button" href={linkTo('endpoints', id)}>
      <Icon name="back" />
      The endpoint
    </a>
  );
  if (value === undefined || event.error !== undefined || sent === undefined) {
    return (
      <Page title="Delivery" actions={back}>
        <Card>
          {event.error?.status === 404 || value !== undefined ? (
            <Empty icon="search" title="There is no such delivery">
              It may have been deleted at the end of its retention.
            </Empty>
          ) : (
            <Waiting error={event.error} what="The delivery" />
          )}
        </Card>
      </Page>
    );
  }
  const { tone, words } = sentState(sent);
  const steps = (attempts.value?.items ?? []).map((each) => ({
    ...each,
    error: each.error ? shortError(each.error) : null,
  }));
  return (
    <Page
      title={value.type}
      about={
        <>
          <Status tone={tone}>{words}</Status> to <span className="break">{endpoint.value?.url ?? id}</span>
        </>
      }
      actions={
        <>
          {back}
          {!isOpen(sent) && (
            <button
              type="button"
              className="button primary"
              disabled={endpoint.value?.enabled === false}
              onClick={() => void resend()}
            >
              <Icon name="replay" />
              Send again
            </button>
          )}
        </>
      }
    >
      {endpoint.value?.enabled === false && (
        <p className="note notice quiet">The endpoint is disabled; enable it to send events again.</p>
      )}
      <div className="grid two">
        <Card title="Attempts" note={`${sent.attempts} ${sent.attempts === 1 ? 'attempt' : 'attempts'}`}>
          <ol className="timeline">
            <li className="quiet">
              <span className="timeline-head">Published</span>
              <time>{formatMoment(value.publishedAt)}</time>
            </li>
            <Steps history={steps} />
            <End sent={sent} />
          </ol>
        </Card>
        <EventBody event={value} />
      </div>
    </Page>
  );
}

/** The last step: the next attempt, or how it ended. */
function End({ sent }: { sent: Sent }) {
  const { tone, words } = sentState(sent);
  const { nextAttemptAt, finishedAt } = sent;
  return (
    <li className={`job ${tone}`}>
      <span className="timeline-head">
        <Status tone={tone}>{words}</Status>
      </span>
      {nextAttemptAt !== null && <time>next attempt {formatMoment(nextAttemptAt)}</time>}
      {finishedAt !== null && <time>ended {formatMoment(finishedAt)}</time>}
    </li>
  );
}
