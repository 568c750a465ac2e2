import { Fragment } from 'react';
import { type Attempt, type DeliveryView, type Job, statusTone } from '../data/deliveries.ts';
import { formatMoment, formatMs } from '../data/format.ts';
import { Icon } from '../parts/icon.tsx';
import { Empty, Status, type Tone } from '../parts/parts.tsx';

/** The jobs of a delivery in order, each with the attempts that the service keeps. */
export function Timeline({ delivery }: { delivery: DeliveryView }) {
  if (delivery.jobs.length === 0) {
    return (
      <Empty icon="deliveries" title="Nothing handles this event">
        The delivery is stored. Add a handler or a forward address for it, then replay it.
      </Empty>
    );
  }
  return (
    <ol className="timeline">
      <li className="quiet">
        <span className="timeline-head">Received and stored</span>
        <time>{formatMoment(delivery.receivedAt)}</time>
      </li>
      {delivery.jobs.map((job) => (
        <JobSteps key={job.target} job={job} />
      ))}
    </ol>
  );
}

function JobSteps({ job }: { job: Job }) {
  const { target, status, attempts, crashes, nextAttemptAt, plannedAt, finishedAt, error, history } = job;
  // The last attempt already shows this error.
  const isTold = error === null || error === undefined || history.at(-1)?.error === error;
  return (
    <>
      <Steps target={target} history={history} />
      {isWaitingAgain(job) && <Replayed target={target} />}
      <li className={`job ${statusTone(status)}`}>
        <span className="timeline-head">
          <code className="break">{target}</code> <Status tone={statusTone(status)}>{status}</Status>
        </span>
        <time>
          {attempts} {attempts === 1 ? 'attempt' : 'attempts'}
          {crashes > 0 && `, ${crashes} crashed`}
          {finishedAt !== null && `, ended ${formatMoment(finishedAt)}`}
          {plannedAt !== null && `, planned for ${formatMoment(plannedAt)}`}
          {nextAttemptAt !== null && `, next ${formatMoment(nextAttemptAt)}`}
        </time>
        {!isTold && <p className="error-text">{error}</p>}
      </li>
    </>
  );
}

/** The attempts of one job in order; `target` is named where there are several. */
export function Steps({ target, history }: { target?: string; history: readonly Attempt[] }) {
  return (
    <>
      {history.map((attempt, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: attempts are only added at the end.
        <Fragment key={i}>
          {isReplay(history[i - 1], attempt) && <Replayed target={target} before={attempt.startedAt} />}
          <Step target={target} attempt={attempt} />
        </Fragment>
      ))}
    </>
  );
}

/** Attempts count from 1 again after a replay; those that were released or crashed do not count. */
function isReplay(before: Attempt | undefined, { attempt }: Attempt): boolean {
  if (before === undefined) return false;
  const isSettled = before.outcome === 'done' || before.outcome === 'dead';
  return isSettled || attempt < before.attempt || (before.outcome === 'retry' && attempt === before.attempt);
}

/** Whether a job that had ended is open again, and its next attempt has not ended yet. */
function isWaitingAgain({ status, history }: Job): boolean {
  const last = history.at(-1)?.outcome;
  return (status === 'pending' || status === 'processing') && (last === 'done' || last === 'dead');
}

function Replayed({ target, before }: { target: string | undefined; before?: string }) {
  return (
    <li className="replayed info">
      <span className="timeline-head">
        <Icon name="replay" />
        {target === undefined ? 'Sent again' : 'Replayed'} <code className="break quiet">{target}</code>
      </span>
      <time>{before === undefined ? 'waits for its next attempt' : `before ${formatMoment(before)}`}</time>
    </li>
  );
}

/** Durations are recorded in whole milliseconds, rounded up. */
const tookOf = (ms: number) => (ms <= 1 ? 'at most 1 ms' : formatMs(ms));

function Step({ target, attempt: made }: { target: string | undefined; attempt: Attempt }) {
  const { attempt, outcome, startedAt, durationMs, process, status, error, answer } = made;
  const [tone, words] = outcomeOf(outcome);
  return (
    <li className={`attempt ${tone}`}>
      <span className="timeline-head">
        Attempt {attempt} {words}
        {status !== null && <Status tone={tone}>{status}</Status>}
        <code className="break quiet">{target}</code>
      </span>
      <time>
        {formatMoment(startedAt)}
        {durationMs !== null && `, took ${tookOf(durationMs)}`}
        {process !== undefined && `, on ${process}`}
      </time>
      {error && <p className="error-text">{error}</p>}
      {answer && <pre className="wrap answer">{answer}</pre>}
    </li>
  );
}

/** The outcome of an attempt as a colour and words. */
export const outcomeOf = (outcome: string): readonly [Tone, string] =>
  OUTCOMES[outcome] ?? ['quiet', outcome];

const OUTCOMES: Readonly<Record<string, readonly [Tone, string]>> = {
  done: ['good', 'succeeded'],
  retry: ['warn', 'failed, retry follows'],
  dead: ['bad', 'failed permanently'],
  released: ['quiet', 'was released'],
  crashed: ['bad', 'crashed with its process'],
};
