import { useEffect, useRef, useState } from 'react';
import { ApiError, act } from '../../data/api.ts';
import { formatMoment } from '../../data/format.ts';
import { goTo, linkTo } from '../../data/route.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { Choice, isoTime, localTime } from '../../parts/filters.tsx';
import { JsonTree } from '../../parts/json-tree.tsx';
import { Notice } from '../../parts/parts.tsx';
import { type EventType, pathOf, useAll } from '../data.ts';

/** The type of test events that need no example. */
const PLAIN = 'portico.test';

/** Sends a test event to an endpoint: a plain one, or the example of an event type. */
export function SendTest({ id, onClose }: { id: string; onClose: () => void }) {
  const types = useAll<EventType>('event-types');
  const [type, setType] = useState(PLAIN);
  const [problem, setProblem] = useState('');
  const examples = types.value?.filter(({ example }) => example != null) ?? [];
  const example = examples.find(({ name }) => name === type)?.example;
  async function send(): Promise<void> {
    try {
      const { event } = await act<{ readonly event: string }>('POST', `${pathOf(id)}/test`, { type });
      goTo(linkTo('delivery', event, { endpoint: id }));
    } catch (error) {
      setProblem((error as Error).message);
    }
  }
  return (
    <Dialog title="Send a test event" submit="Send" onSubmit={() => void send()} onClose={onClose}>
      <Choice
        label="Event type"
        options={[[PLAIN, 'A plain test event'], ...examples.map(({ name }) => [name, name] as const)]}
        value={type}
        onPick={setType}
      />
      {example !== undefined && (
        <div className="body">
          <JsonTree value={example} />
        </div>
      )}
      <p className="note">It is signed and sent like any other event, to this endpoint alone.</p>
      {problem !== '' && <Notice tone="bad">{problem}</Notice>}
    </Dialog>
  );
}

const DAY = 86_400_000;
/** Time after which a request is repeated that came too soon, in milliseconds. */
const PAUSE = 1_000;

interface ReplayPage {
  readonly examined: number;
  readonly added: number;
  readonly upTo: string | null;
  readonly next: number | null;
}

interface Progress {
  readonly examined: number;
  readonly added: number;
  /** From 0 to 1, by the times of the events. */
  readonly share: number;
  readonly upTo: string | null;
  readonly state: 'runs' | 'stopped' | 'ended';
}

/** Sends the events since a time to an endpoint that has not got them: page by page, with a stop. */
export function Replay({ id, onClose }: { id: string; onClose: () => void }) {
  const [since, setSince] = useState(() => new Date(Date.now() - DAY).toISOString());
  const [types, setTypes] = useState('');
  const [progress, setProgress] = useState<Progress>();
  const [problem, setProblem] = useState('');
  const isStopped = useRef(false);
  useEffect(() => {
    isStopped.current = false;
    return () => {
      isStopped.current = true;
    };
  }, []);

  async function run(): Promise<void> {
    const until = new Date().toISOString();
    const span = Math.max(1, Date.parse(until) - Date.parse(since));
    const named = types.split(/[\s,]+/).filter((each) => each !== '');
    const question = { since, until, ...(named.length > 0 && { types: named }) };
    let reached: Progress = { examined: 0, added: 0, share: 0, upTo: null, state: 'runs' };
    setProblem('');
    try {
      for (let after: number | null = 0; after !== null && !isStopped.current; ) {
        setProgress(reached);
        const page: ReplayPage = await nextPage(id, { ...question, after });
        const { examined, added, upTo, next } = page;
        reached = {
          ...reached,
          examined: reached.examined + examined,
          added: reached.added + added,
          ...(upTo !== null && { upTo, share: (Date.parse(upTo) - Date.parse(since)) / span }),
        };
        after = next;
      }
      setProgress({ ...reached, state: isStopped.current ? 'stopped' : 'ended' });
    } catch (error) {
      setProblem((error as Error).message);
      setProgress(undefined);
    }
  }

  const isRunning = progress?.state === 'runs';
  return (
    <Dialog
      title="Replay events"
      submit={progress === undefined ? 'Replay' : undefined}
      isDisabled={since === ''}
      cancel={isRunning ? 'Stop' : progress === undefined ? 'Cancel' : 'Close'}
      onSubmit={() => void run()}
      onClose={() => {
        if (!isRunning) onClose();
        isStopped.current = true;
      }}
    >
      {progress === undefined ? (
        <>
          <p>
            Sends the events since a time that this endpoint wants and has not got, such as those from before
            it was added or while it was disabled.
          </p>
          <label className="field">
            <span>Since</span>
            <input
              type="datetime-local"
              value={localTime(since)}
              onChange={({ currentTarget }) => setSince(isoTime(currentTarget.value))}
            />
          </label>
          <label className="field">
            <span>Only these event types; empty for those of the endpoint</span>
            <input
              type="text"
              value={types}
              placeholder="invoice.paid, customer.*"
              onChange={({ currentTarget }) => setTypes(currentTarget.value)}
            />
          </label>
        </>
      ) : (
        <>
          <p role="status">
            {progress.examined} {progress.examined === 1 ? 'event' : 'events'} examined, {progress.added} to
            be sent
            {progress.upTo !== null && isRunning && `, up to ${formatMoment(progress.upTo)}`}.
            {progress.state === 'ended' && ' The replay is complete.'}
            {progress.state === 'stopped' && ' Stopped: what was added is sent. A new replay adds the rest.'}
          </p>
          <progress max={1} value={progress.state === 'ended' ? 1 : progress.share} aria-label="Progress" />
        </>
      )}
      {problem !== '' && <Notice tone="bad">{problem}</Notice>}
    </Dialog>
  );
}

/** One page of a replay; a request that came too soon is repeated. */
async function nextPage(id: string, question: object): Promise<ReplayPage> {
  for (;;) {
    try {
      return await act<ReplayPage>('POST', `${pathOf(id)}/replay`, question);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 429) throw error;
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    }
  }
}
