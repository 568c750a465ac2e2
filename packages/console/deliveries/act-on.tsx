import { useEffect, useRef, useState } from 'react';
import { act } from '../data/api.ts';
import {
  type Action,
  asksFirst,
  byStatus,
  collect,
  type DeliveryRow,
  isActionable,
} from '../data/deliveries.ts';
import { linkTo } from '../data/route.ts';
import { Dialog } from '../parts/dialog.tsx';
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
  replay: { title: 'Replay deliveries', verb: 'Replay', done: 'replayed' },
  discard: { title: 'Discard deliveries', verb: 'Discard', done: 'discarded' },
} as const;

/** Maximum concurrent requests. */
const AT_ONCE = 4;

interface Failure {
  readonly id: string;
  readonly why: string;
}

/**
 * Asks before deliveries are changed, with how many of each status there are; changes each, and lists the failures. The
 * deliveries are `chosen`, or all that match `query`.
 */
export function ActOn({
  action,
  chosen,
  query,
  onClose,
  onDone,
}: {
  action: Action;
  chosen?: readonly DeliveryRow[] | undefined;
  query: URLSearchParams;
  onClose: () => void;
  onDone: () => void;
}) {
  const [found, setFound] = useState(0);
  const [rows, setRows] = useState<readonly DeliveryRow[] | undefined>(() =>
    chosen?.filter((row) => isActionable(action, row)),
  );
  const [problem, setProblem] = useState('');
  const [done, setDone] = useState<number>();
  const [failures, setFailures] = useState<readonly Failure[]>([]);
  const abort = useRef(new AbortController());
  const { title, verb, done: past } = WORDS[action];

  // biome-ignore lint/correctness/useExhaustiveDependencies: counted once, when the dialog opens.
  useEffect(() => {
    const controller = new AbortController();
    abort.current = controller;
    if (chosen !== undefined) return () => controller.abort();
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

  const again = rows?.filter((row) => asksFirst(action, row)).length ?? 0;
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
        <>
          <p>
            {rows === undefined
              ? `Counting: ${total} so far…`
              : total === 0
                ? `None of these deliveries can be ${past}.`
                : `${total} ${total === 1 ? 'delivery' : 'deliveries'} can be ${past}: ${byStatus(rows)}.`}
          </p>
          {rows !== undefined && again > 0 && (
            <Notice tone="warn">
              {again === 1 ? 'One has ended as it should' : `${again} have ended as they should`}: every
              handler and forward address gets {again === 1 ? 'it' : 'them'} once more.
            </Notice>
          )}
        </>
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
