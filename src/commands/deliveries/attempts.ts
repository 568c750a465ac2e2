import { printable } from '../../core/quote.ts';
import type { AttemptEntry } from '../../inbox/attempts.ts';
import { cell, pad } from './cells.ts';

/** Longer answers are cut; --json has the kept kilobyte. */
const MAX_ANSWER = 200;

const OUTCOMES: Readonly<Record<AttemptEntry['outcome'], string>> = {
  done: 'done',
  retry: 'failed',
  dead: 'failed, dead',
  released: 'released',
  died: 'died',
};
const OUTCOME_WIDTH = Math.max(...Object.values(OUTCOMES).map(({ length }) => length));

/** The lines of a job's history, the oldest attempt first. */
export function describeAttempts(history: readonly AttemptEntry[]): readonly string[] {
  const numbers = Math.max(...history.map(({ attempt }) => String(attempt).length));
  const times = Math.max(...history.map((entry) => tookOf(entry).length));
  return history.flatMap((entry) => {
    const { attempt, outcome, startedAt, process, answer, error } = entry;
    const head = [
      pad(String(attempt), numbers, true),
      new Date(startedAt).toISOString(),
      pad(tookOf(entry), times, true),
      pad(OUTCOMES[outcome], OUTCOME_WIDTH),
      printable(process),
    ].join('  ');
    const indent = ' '.repeat(6 + numbers);
    const said = answer === null || answer.body === '' ? [] : [`answer: ${cell(answer.body, MAX_ANSWER)}`];
    const status = answer === null ? [] : [`status ${answer.status}`];
    const failed = error === null ? [] : [printable(error)];
    const more = [...(failed.length > 0 ? failed : status), ...said];
    return [`    ${head}`, ...more.map((line) => indent + line)];
  });
}

function tookOf({ duration }: AttemptEntry): string {
  return duration === null ? '' : `${duration.toLocaleString('en-US')} ms`;
}
