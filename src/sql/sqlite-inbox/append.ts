import type { ClaimedJob, NewDelivery, NewJob } from '../../inbox/delivery.ts';
import type { Appended, HandOver } from '../../inbox/inbox.ts';
import { storedKey } from '../inbox-sql.ts';
import type { Step, StepRows } from '../sqlite-writer/batch.ts';
import { ruledJobsJson } from './delivery-zones.ts';

/**
 * Builds the steps that append a delivery; with `if-changed`, only if the previous step changed something.
 * Jobs of the handover are stored as claimed.
 */
export type AppendSteps = (
  delivery: NewDelivery,
  when?: 'if-changed',
  handOver?: HandOver,
) => readonly Step[];

/** Builds steps with a clock that never goes back, because the wall clock may be set in both directions. */
export function appendStepsBy(clock: () => number): AppendSteps {
  return (delivery, when, handOver) => {
    const { id, source, event, dataPointer, contentType, body, receivedAt, jobs } = delivery;
    const { headers = null, trace = null, senderEvent = null } = delivery;
    const dedupKey = storedKey(delivery.dedupKey);
    const values = [id, source, event, dataPointer, contentType, body, receivedAt, dedupKey, headers, trace];
    // Few deliveries have it, and a missing parameter is NULL.
    if (senderEvent !== null) values.push(senderEvent);
    const append = dedupKey === null ? 'appendDelivery' : 'appendKeyed';
    const steps: Step[] = [{ statement: when === undefined ? append : 'appendIfChanged', values }];
    if (jobs.length > 0) {
      const now = clock();
      const dueAt = Math.min(receivedAt, now);
      if (jobs.every(isPlain)) {
        let statement: Step['statement'] = 'addJob';
        for (const { target } of jobs) {
          const claimed = handOver?.targets.includes(target) ? handOver : undefined;
          const values =
            claimed === undefined
              ? [dueAt, target, null, null, 0]
              : [now + claimed.lease, target, claimed.owner, now, 1];
          steps.push({ statement, values });
          statement = 'addFurtherJob';
        }
      } else {
        const values = [ruledJobsJson(jobs, dueAt, Math.max(0, now - Date.now()))];
        steps.push({ statement: 'addRuledJobs', values });
      }
    }
    if (dedupKey !== null) {
      steps.push({ statement: 'reviveDuplicate', values: [receivedAt, source, dedupKey] });
    }
    return steps;
  };
}

/** Whether a job has only a target, as most have. */
const isPlain = ({ orderKey, runAt, priority }: NewJob) =>
  orderKey === null && runAt === undefined && priority === undefined;

/** The jobs stored as claimed, from the rows of the steps: the step of each job returns its number. */
export function readHandedOver(
  delivery: NewDelivery,
  { targets }: HandOver,
  rows: StepRows,
): readonly ClaimedJob[] {
  if (!delivery.jobs.every(isPlain)) return [];
  return delivery.jobs.flatMap(({ target }, i) => {
    const [row] = rows[1 + i] ?? [];
    if (row === undefined || !targets.includes(target)) return [];
    return [{ job: Number(row[0]), target, attempt: 1, crashes: 0, ordered: false, delivery }];
  });
}

/**
 * Reads the rows of the steps: the first step inserts the delivery, the last one revives dead jobs of a
 * duplicate.
 */
export function readAppended(rows: StepRows): Appended {
  if ((rows[0] ?? []).length > 0) return 'stored';
  return rows.length > 1 && (rows.at(-1) ?? []).length > 0 ? 'revived' : 'duplicate';
}
