import { useEffect, useRef, useState } from 'react';
import { act } from '../data/api.ts';
import { type Action, collect, type DeliveryRow, isActionable } from '../data/deliveries.ts';
import { formatMs } from '../data/format.ts';
import { linkTo } from '../data/route.ts';
import { useData } from '../data/use-data.ts';
import { Dialog } from '../parts/dialog.tsx';
import { Choice } from '../parts/filters.tsx';
import { Notice } from '../parts/parts.tsx';
import { say } from '../parts/toasts.tsx';

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
export function ActOnAll({
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
}

interface Answer {
  readonly status: number;
  readonly body: string;
  readonly delivery?: string;
  readonly took: number;
}

const EXAMPLE = JSON.stringify({ test: true, amount: 12.5 }, null, 2);

/** Sends a delivery to this service, signed as its sender would. */
export function SendTest({ onClose, onSent }: { onClose: () => void; onSent: () => void }) {
  const { value } = useData<{ readonly sources: readonly Source[] }>('test-deliveries');
  const [name, setName] = useState('');
  const [event, setEvent] = useState<string>();
  const [data, setData] = useState(EXAMPLE);
  const [answer, setAnswer] = useState<Answer>();
  const [problem, setProblem] = useState('');
  const [isSending, setSending] = useState(false);
  const sources = value?.sources ?? [];
  const source = sources.find((each) => each.name === name);
  const shownEvent = event ?? source?.event ?? '';

  async function send(): Promise<void> {
    setProblem('');
    setAnswer(undefined);
    let parsed: unknown;
    try {
      parsed = JSON.parse(data);
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
        }}
      />
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
          value={data}
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
