import { useEffect, useState } from 'react';
import { useAbout } from '../../data/about.ts';
import { type Action, type DeliveryList, listQuery } from '../../data/deliveries.ts';
import { useLive } from '../../data/live.ts';
import { goTo, linkTo, type Route } from '../../data/route.ts';
import { useData } from '../../data/use-data.ts';
import { Icon } from '../../parts/icon.tsx';
import { Card, Empty, Page, Waiting } from '../../parts/parts.tsx';
import { ActOnAll } from './deliveries-act.tsx';
import { Filters } from './deliveries-filters.tsx';
import { DeliveriesTable } from './deliveries-table.tsx';
import { SendTest } from './deliveries-test.tsx';
import { Delivery } from './delivery.tsx';

/** The webhook deliveries; new ones appear as they arrive. */
export function Deliveries({ route }: { route: Route }) {
  return route.item === '' ? <List route={route} /> : <Delivery id={route.item} />;
}

const PAGE = '50';

function List({ route: { query } }: { route: Route }) {
  const about = useAbout();
  const [isPaused, setPaused] = useState(false);
  const [waiting, setWaiting] = useState(0);
  const [dialog, setDialog] = useState<Action | 'test'>();
  const before = query.get('before');
  const isFirst = before === null;
  const path = listQuery(query, { limit: PAGE, ...(before !== null && { before }) });
  const list = useData<DeliveryList>(path);
  const { value, error, reload } = list;

  useLive('deliveries', {
    deliveries: () => {
      if (isPaused) setWaiting((count) => count + 1);
      else if (isFirst) reload();
    },
  });
  useEffect(() => {
    if (!isPaused) setWaiting(0);
  }, [isPaused]);

  const isFiltered = [...query.keys()].some((name) => name !== 'before');
  const mayAct = about?.actions === true;
  return (
    <Page
      title="Deliveries"
      about="The deliveries of the webhook door and their status."
      actions={
        <>
          <button
            type="button"
            className="button"
            aria-pressed={isPaused}
            onClick={() => setPaused(!isPaused)}
          >
            <Icon name={isPaused ? 'play' : 'pause'} />
            {isPaused ? 'Resume' : 'Pause'}
          </button>
          {mayAct && about.endpoints.includes('test-deliveries') && (
            <button type="button" className="button primary" onClick={() => setDialog('test')}>
              <Icon name="send" />
              Send a test delivery
            </button>
          )}
        </>
      }
    >
      <Filters query={query} />
      {waiting > 0 && (
        <p className="notice info" role="status">
          The list has changed since you paused it.
        </p>
      )}
      <Card>
        {value === undefined || error !== undefined ? (
          <Waiting error={error} what="The list of deliveries" />
        ) : value.items.length === 0 ? (
          <Empty icon="deliveries" title={isFiltered ? 'Nothing matches' : 'No deliveries yet'}>
            {isFiltered
              ? value.next === null
                ? 'No delivery matches all filters.'
                : 'None so far; older deliveries have not been searched yet.'
              : 'Deliveries appear here as soon as a sender posts one. You can send a test delivery yourself.'}
          </Empty>
        ) : (
          <DeliveriesTable items={value.items} mayAct={mayAct} onDone={reload} />
        )}
        {value !== undefined && (value.items.length > 0 || value.next !== null) && (
          <footer className="table-foot">
            {mayAct ? (
              <div className="actions">
                <button type="button" className="button small" onClick={() => setDialog('replay')}>
                  Replay all {isFiltered ? 'matching' : ''}
                </button>
                <button type="button" className="button small danger" onClick={() => setDialog('discard')}>
                  Discard all {isFiltered ? 'matching' : ''}
                </button>
              </div>
            ) : (
              <span />
            )}
            <div className="actions">
              {!isFirst && (
                <button type="button" className="button small" onClick={() => goTo(pageLink(query))}>
                  Newest
                </button>
              )}
              {value.next !== null && (
                <button
                  type="button"
                  className="button small"
                  onClick={() => goTo(pageLink(query, String(value.next)))}
                >
                  Older
                </button>
              )}
            </div>
          </footer>
        )}
      </Card>
      {dialog === 'test' && <SendTest onClose={() => setDialog(undefined)} onSent={reload} />}
      {(dialog === 'replay' || dialog === 'discard') && (
        <ActOnAll action={dialog} query={query} onClose={() => setDialog(undefined)} onDone={reload} />
      )}
    </Page>
  );
}

function pageLink(query: URLSearchParams, before?: string): string {
  return linkTo('deliveries', '', { ...Object.fromEntries(query), before });
}
