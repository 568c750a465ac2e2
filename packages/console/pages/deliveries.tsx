import { useEffect, useRef, useState } from 'react';
import { useAbout } from '../data/about.ts';
import { act, useLive } from '../data/api.ts';
import {
  type Action,
  collect,
  type DeliveryList,
  type DeliveryRow,
  isActionable,
  listQuery,
  statusTone,
} from '../data/deliveries.ts';
import { formatBytes, formatMoment, formatMs } from '../data/format.ts';
import { linkTo, type Route } from '../data/route.ts';
import { useData, usePaged } from '../data/use-data.ts';
import { type Column, DataTable, Loaded, Pager } from '../parts/data-table.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Choice, type Filter, Filters } from '../parts/filters.tsx';
import { Icon } from '../parts/icon.tsx';
import { Card, Empty, Notice, Page, PauseButton, Status } from '../parts/parts.tsx';
import { actOn, Delivery } from './delivery.tsx';

/** The webhook deliveries; new ones appear as they arrive. */
export function Deliveries({ route }: { route: Route }) {
  return route.item === '' ? <List route={route} /> : <Delivery id={route.item} />;
}

const PAGE = '50';

const STATUSES = ['unhandled', 'processing', 'pending', 'dead', 'done', 'discarded'] as const;

const FILTERS: readonly Filter[] = [
  {
    kind: 'choice',
    name: 'status',
    label: 'Status',
    options: [['', 'Any'], ...STATUSES.map((status) => [status, status] as const)],
  },
  {
    kind: 'choice',
    name: 'since',
    label: 'Received',
    options: [
      ['', 'Any time'],
      ['15m', 'Last 15 minutes'],
      ['1h', 'Last hour'],
      ['24h', 'Last 24 hours'],
      ['7d', 'Last 7 days'],
    ],
  },
  { kind: 'time', name: 'until', label: 'Before' },
  { kind: 'text', name: 'event', label: 'Event', hint: 'new_commit' },
  { kind: 'text', name: 'source', label: 'Source', hint: 'github' },
  { kind: 'text', name: 'text', label: 'Text in the body', hint: 'customer or id', isWide: true },
];

function List({ route }: { route: Route }) {
  const about = useAbout();
  const [isPaused, setPaused] = useState(false);
  const [hasChanged, setChanged] = useState(false);
  const [dialog, setDialog] = useState<Action | 'test'>();
  const list = usePaged<DeliveryList>(route, 'before', (query) => {
    const before = query.get('before');
    return listQuery(query, { limit: PAGE, ...(before !== null && { before }) });
  });
  const { filters, isFirst, reload, turnTo } = list;

  useLive('deliveries', {
    deliveries: () => {
      if (isPaused) setChanged(true);
      else if (isFirst) reload();
    },
  });
  useEffect(() => {
    if (!isPaused) setChanged(false);
  }, [isPaused]);

  const isFiltered = Object.keys(filters).length > 0;
  const mayAct = about?.actions === true;
  const close = () => setDialog(undefined);
  const toAll = (action: Action, words: string, className: string) => (
    <button type="button" className={`button small ${className}`} onClick={() => setDialog(action)}>
      {words} all {isFiltered ? 'matching' : ''}
    </button>
  );
  return (
    <Page
      title="Deliveries"
      about="The deliveries of the webhook door and their status."
      actions={
        <>
          <PauseButton isPaused={isPaused} onChange={setPaused} />
          {mayAct && about.endpoints.includes('test-deliveries') && (
            <button type="button" className="button primary" onClick={() => setDialog('test')}>
              <Icon name="send" />
              Send a test delivery
            </button>
          )}
        </>
      }
    >
      <Filters filters={FILTERS} values={filters} onApply={list.apply} />
      {hasChanged && <Notice tone="info">The list has changed since you paused it.</Notice>}
      <Card>
        <Loaded data={list} what="The list of deliveries">
          {({ items, next }) => (
            <>
              {items.length === 0 ? (
                <NoDeliveries isFiltered={isFiltered} isEnd={next === null} />
              ) : (
                <DataTable
                  label="Deliveries"
                  rows={items}
                  keyOf={({ id }) => id}
                  columns={[...COLUMNS, mayAct && actionsOf(reload)]}
                />
              )}
              {(items.length > 0 || next !== null) && (
                <Pager
                  actions={
                    mayAct && (
                      <>
                        {toAll('replay', 'Replay', '')}
                        {toAll('discard', 'Discard', 'danger')}
                      </>
                    )
                  }
                  pages={[
                    { title: 'Newest', onGo: isFirst ? undefined : () => turnTo() },
                    { title: 'Older', onGo: next === null ? undefined : () => turnTo(String(next)) },
                  ]}
                />
              )}
            </>
          )}
        </Loaded>
      </Card>
      {dialog === 'test' && <SendTest onClose={close} onSent={reload} />}
      {(dialog === 'replay' || dialog === 'discard') && (
        <ActOnAll action={dialog} query={route.query} onClose={close} onDone={reload} />
      )}
    </Page>
  );
}

function NoDeliveries({ isFiltered, isEnd }: { isFiltered: boolean; isEnd: boolean }) {
  if (!isFiltered) {
    return (
      <Empty icon="deliveries" title="No deliveries yet">
        Deliveries appear here as soon as a sender posts one. You can send a test delivery yourself.
      </Empty>
    );
  }
  return (
    <Empty icon="deliveries" title="Nothing matches">
      {isEnd
        ? 'No delivery matches all filters.'
        : 'None so far; older deliveries have not been searched yet.'}
    </Empty>
  );
}

const COLUMNS: readonly Column<DeliveryRow>[] = [
  { title: 'Received', className: 'nowrap', cell: ({ receivedAt }) => formatMoment(receivedAt) },
  { title: 'Status', cell: ({ status }) => <Status tone={statusTone(status)}>{status}</Status> },
  {
    title: 'Event',
    className: 'cut',
    cell: ({ event, senderEvent }) => (
      <>
        {event ?? <span className="quiet">none</span>}
        {senderEvent !== event && <span className="quiet"> {senderEvent}</span>}
      </>
    ),
  },
  {
    title: 'Source',
    className: 'cut',
    cell: ({ source }) => source || <span className="quiet">/webhook</span>,
  },
  { title: 'Attempts', className: 'number', cell: ({ attempts }) => attempts },
  { title: 'Size', className: 'number', cell: ({ size }) => formatBytes(size) },
  {
    title: 'Delivery',
    className: 'nowrap',
    cell: ({ id }) => (
      <a className="mono" href={linkTo('deliveries', id)}>
        {id.slice(0, 18)}…
      </a>
    ),
  },
];

function actionsOf(onDone: () => void): Column<DeliveryRow> {
  return {
    title: 'Actions',
    isTitleHidden: true,
    className: 'row-actions',
    cell: (row) =>
      (['replay', 'discard'] as const)
        .filter((action) => isActionable(action, row))
        .map((action) => {
          const words = action === 'replay' ? 'Replay' : 'Discard';
          return (
            <button
              key={action}
              type="button"
              className="button small"
              aria-label={`${words} ${row.id}`}
              onClick={() => void actOn(row.id, action, onDone)}
            >
              {words}
            </button>
          );
        }),
  };
}

const WORDS = {
  replay: { title: 'Replay all', verb: 'Replay', done: 'replayed' },
  discard: { title: 'Discard all', verb: 'Discard', done: 'discarded' },
} as const;

/** Maximum concurrent requests. */
const AT_ONCE = 4;

interface Failure {
  readonly id: string;
  readonly why: string;
}

/** Counts the matching deliveries, asks for confirmation, changes each, and lists the failures. */
function ActOnAll({
  action,
  query,
  onClose,
  onDone,
}: {
  action: Action;
  query: URLSearchParams;
  onClose: () => void;
  onDone: () => void;
}) {
  const [found, setFound] = useState(0);
  const [rows, setRows] = useState<readonly DeliveryRow[]>();
  const [problem, setProblem] = useState('');
  const [done, setDone] = useState<number>();
  const [failures, setFailures] = useState<readonly Failure[]>([]);
  const abort = useRef(new AbortController());
  const { title, verb, done: past } = WORDS[action];

  // biome-ignore lint/correctness/useExhaustiveDependencies: counted once, when the dialog opens.
  useEffect(() => {
    const controller = new AbortController();
    abort.current = controller;
    collect(query, (row) => isActionable(action, row), setFound, controller.signal).then(setRows, (error) => {
      if (!controller.signal.aborted) setProblem((error as Error).message);
    });
    return () => controller.abort();
  }, []);

  async function run(all: readonly DeliveryRow[]): Promise<void> {
    const { signal } = abort.current;
    let next = 0;
    let ended = 0;
    setDone(0);
    const worker = async () => {
      for (let row = all[next++]; row !== undefined && !signal.aborted; row = all[next++]) {
        const { id } = row;
        try {
          await act('POST', `deliveries/${encodeURIComponent(id)}`, { action });
        } catch (error) {
          setFailures((before) => [...before, { id, why: (error as Error).message }]);
        }
        setDone(++ended);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    onDone();
  }

  const total = rows?.length ?? found;
  const hasEnded = done !== undefined && done === total;
  return (
    <Dialog
      title={title}
      onClose={onClose}
      tone={action === 'discard' ? 'danger' : 'primary'}
      submit={done === undefined ? `${verb} ${total} ${total === 1 ? 'delivery' : 'deliveries'}` : undefined}
      isDisabled={rows === undefined || total === 0}
      cancel={hasEnded ? 'Close' : done === undefined ? 'Cancel' : 'Stop'}
      onSubmit={() => rows !== undefined && void run(rows)}
    >
      {problem !== '' && <Notice tone="bad">{problem}</Notice>}
      {done === undefined ? (
        <p>
          {rows === undefined
            ? `Counting: ${total} so far…`
            : total === 0
              ? `None of the matching deliveries can be ${past}.`
              : `${total} ${total === 1 ? 'delivery matches' : 'deliveries match'} and can be ${past}.`}
        </p>
      ) : (
        <>
          <p role="status">
            {done - failures.length} of {total} {past}
            {failures.length > 0 && `, ${failures.length} failed`}.
          </p>
          <progress max={total} value={done} aria-label="Progress" />
        </>
      )}
      {failures.length > 0 && (
        <ul className="body failures">
          {failures.slice(0, 50).map(({ id, why }) => (
            <li key={id}>
              <a className="mono" href={linkTo('deliveries', id)}>
                {id}
              </a>
              : {why}
            </li>
          ))}
        </ul>
      )}
    </Dialog>
  );
}

interface Source {
  readonly name: string;
  readonly scheme: string;
  readonly event: string;
  readonly samples: readonly { readonly event: string; readonly data: unknown }[];
}

interface Answer {
  readonly status: number;
  readonly body: string;
  readonly delivery?: string;
  readonly took: number;
}

const EXAMPLE = { test: true, amount: 12.5 };

/** Sends a delivery to this service, signed as its sender would. */
function SendTest({ onClose, onSent }: { onClose: () => void; onSent: () => void }) {
  const { value } = useData<{ readonly sources: readonly Source[] }>('test-deliveries');
  const [name, setName] = useState('');
  const [event, setEvent] = useState<string>();
  const [data, setData] = useState<string>();
  const [answer, setAnswer] = useState<Answer>();
  const [problem, setProblem] = useState('');
  const [isSending, setSending] = useState(false);
  const sources = value?.sources ?? [];
  const source = sources.find((each) => each.name === name);
  const samples = source?.samples ?? [];
  const shownEvent = event ?? source?.event ?? '';
  const sample = samples.find((each) => each.event === shownEvent);
  // Edited data stays until another source or sample is picked.
  const shownData = data ?? JSON.stringify(sample?.data ?? EXAMPLE, null, 2);

  async function send(): Promise<void> {
    setProblem('');
    setAnswer(undefined);
    let parsed: unknown;
    try {
      parsed = JSON.parse(shownData);
    } catch (error) {
      setProblem(`The data is not valid JSON: ${(error as Error).message}`);
      return;
    }
    setSending(true);
    try {
      setAnswer(
        await act<Answer>('POST', 'test-deliveries', { source: name, event: shownEvent, data: parsed }),
      );
      onSent();
    } catch (error) {
      setProblem((error as Error).message);
    }
    setSending(false);
  }

  return (
    <Dialog
      title="Send a test delivery"
      onClose={onClose}
      submit={isSending ? 'Sending…' : 'Send'}
      isDisabled={isSending}
      cancel="Close"
      onSubmit={() => void send()}
    >
      <Choice
        label="Source"
        options={sources.map(({ name: each, scheme }) => [
          each,
          `${each === '' ? '/webhook' : each} (${scheme === 'none' ? 'not signed' : scheme})`,
        ])}
        value={name}
        onPick={(picked) => {
          setName(picked);
          setEvent(undefined);
          setData(undefined);
        }}
      />
      {samples.length > 0 && (
        <Choice
          label="Sample"
          options={[
            ...samples.map((each) => [each.event, each.event] as const),
            ...(sample === undefined ? [[shownEvent, 'None'] as const] : []),
          ]}
          value={shownEvent}
          onPick={(picked) => {
            setEvent(picked);
            setData(undefined);
          }}
        />
      )}
      <label className="field">
        <span>Event, by the sender's name</span>
        <input
          type="text"
          value={shownEvent}
          onChange={({ currentTarget }) => setEvent(currentTarget.value)}
        />
      </label>
      <label className="field">
        <span>Data, as JSON</span>
        <textarea
          value={shownData}
          spellCheck={false}
          onChange={({ currentTarget }) => setData(currentTarget.value)}
        />
      </label>
      {problem !== '' && <Notice tone="bad">{problem}</Notice>}
      {answer !== undefined && (
        <Notice tone={answer.status < 300 ? 'good' : 'bad'}>
          Answered {answer.status} in {formatMs(answer.took)}: {answer.body}
          {answer.delivery !== undefined && (
            <>
              {' '}
              <a href={linkTo('deliveries', answer.delivery)}>Show the delivery</a>
            </>
          )}
        </Notice>
      )}
    </Dialog>
  );
}
