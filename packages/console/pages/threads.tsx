import { useMemo } from 'react';
import { useLive } from '../data/api.ts';
import { formatMs, formatValue } from '../data/format.ts';
import { type Samples, useHistory } from '../data/history.ts';
import { useData } from '../data/use-data.ts';
import { Icon } from '../parts/icon.tsx';
import { Card, Page, Status, Waiting } from '../parts/parts.tsx';
import { Plot } from '../plots/plot.tsx';

interface Frame {
  readonly className: string;
  readonly methodName: string;
  readonly fileName?: string;
  readonly lineNumber: number;
}

interface Thread {
  readonly threadId: number;
  readonly threadName: string;
  readonly threadState: string;
  readonly stackTrace: readonly Frame[];
}

interface EventLoop {
  readonly window: string;
  readonly utilization: { readonly sinceStart: number; readonly window: number };
  readonly delay: Readonly<Record<string, number | string>>;
}

const DELAYS = [
  ['p50', 'Median'],
  ['p90', '90 %'],
  ['p99', '99 %'],
  ['p999', '99.9 %'],
  ['max', 'Highest'],
] as const;

/** The current stacks of the process's threads, and the delay of its event loop. */
export function Threads() {
  const { value, error, reload } = useData<{ readonly threads: readonly Thread[] }>('threaddump');
  const loop = useData<EventLoop>('eventloop', 5_000);
  const { history, add } = useHistory('15m');
  useLive('history', { samples: (samples: Samples) => add(samples) });
  const to = history?.times.at(-1) ?? Date.now();
  const lines = useMemo(
    () => [{ label: 'Busy', values: history?.columns['eventloop.utilization']?.values ?? [] }],
    [history],
  );
  return (
    <Page
      title="Threads"
      about="How busy the event loop is, and the stacks of all threads."
      actions={
        <button type="button" className="button" onClick={reload}>
          <Icon name="replay" />
          Read the stacks again
        </button>
      }
    >
      <div className="grid two">
        <Card title="Event loop" note="last one to two minutes">
          {loop.value === undefined ? (
            <Waiting error={loop.error} what="The event loop" />
          ) : (
            <dl className="tiles">
              <div>
                <dt>Busy</dt>
                <dd>{formatValue(loop.value.utilization.window, 'share')}</dd>
              </div>
              {DELAYS.map(([key, title]) => (
                <div key={key}>
                  <dt>{title}</dt>
                  <dd>{formatMs(Number(loop.value?.delay[key] ?? 0))}</dd>
                </div>
              ))}
            </dl>
          )}
        </Card>
        <Plot
          title="Utilisation of the event loop"
          unit="share"
          times={history?.times ?? []}
          lines={lines}
          from={to - 900_000}
          to={to}
          least={0.1}
        />
      </div>
      {value === undefined || error !== undefined ? (
        <Card>
          <Waiting error={error} what="The list of threads" />
        </Card>
      ) : (
        value.threads.map((thread) => <Stack key={thread.threadId} thread={thread} />)
      )}
    </Page>
  );
}

function Stack({ thread: { threadName, threadState, stackTrace } }: { thread: Thread }) {
  return (
    <Card
      title={threadName}
      note={
        <Status tone={threadState === 'RUNNABLE' ? 'info' : 'quiet'}>
          {threadState === 'RUNNABLE' ? 'running' : 'waiting'}
        </Status>
      }
    >
      {stackTrace.length === 0 ? (
        <p className="card-body quiet">Idle</p>
      ) : (
        <ol className="stack">
          {stackTrace.map(({ className, methodName, fileName, lineNumber }, i) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a stack may contain the same frame several times.
            <li key={i}>
              <code className="break">{className === '' ? methodName : `${className}.${methodName}`}</code>
              <span className="quiet break">
                {fileName ?? 'unknown source'}
                {lineNumber > 0 && `:${lineNumber}`}
              </span>
            </li>
          ))}
        </ol>
      )}
    </Card>
  );
}
