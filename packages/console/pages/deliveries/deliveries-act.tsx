import { useEffect, useRef, useState } from 'react';
import { act } from '../../data/api.ts';
import { type Action, collect, type DeliveryRow, isActionable } from '../../data/deliveries.ts';
import { linkTo } from '../../data/route.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { Notice } from '../../parts/parts.tsx';

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
      foot={
        <>
          <button type="button" className="button" onClick={onClose}>
            {hasEnded ? 'Close' : done === undefined ? 'Cancel' : 'Stop'}
          </button>
          {done === undefined && (
            <button
              type="button"
              className={action === 'discard' ? 'button danger' : 'button primary'}
              disabled={rows === undefined || total === 0}
              onClick={() => rows !== undefined && void run(rows)}
            >
              {verb} {total} {total === 1 ? 'delivery' : 'deliveries'}
            </button>
          )}
        </>
      }
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
        <ul className="failures">
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
