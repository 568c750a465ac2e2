import {
  type ClaimedJob,
  DIGEST_AT,
  type NewDelivery,
  type NewJob,
  PRIORITY_LEVEL,
} from '../../inbox/delivery.ts';
import type { Appended, HandOver } from '../../inbox/inbox.ts';
import { HEAD_START, isBlocked, storedKey } from '../inbox-sql.ts';
import { writeStep } from '../sqlite/sql.ts';
import type { Step, StepRows } from '../sqlite-writer/batch.ts';
import type { WriteQueue } from '../sqlite-writer/write-queue.ts';
import type { ConditionalAppends } from '../stores/producers.ts';
import type { Step as SharedStep } from '../stores/sql.ts';

/** The highest `seq` ever used. */
export const HIGHEST = `max(coalesce((SELECT max(seq) FROM deliveries), 0),
      coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'deliveries'), 0))`;

const append = (columns: string, values: string, rows = (all: string) => `VALUES (${all})`) => `
    INSERT INTO deliveries (${columns}id, source, event, data_pointer, content_type, body, received_at, dedup_key, headers, trace, sender_event)
    ${rows(`${values}?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11`)}
    ON CONFLICT (source, dedup_key) WHERE dedup_key IS NOT NULL DO NOTHING`;

/** A delivery with a remembered key is a duplicate of a removed one. The lookup costs a few microseconds. */
const unlessRemembered = (values: string) => `
    SELECT ${values}
    WHERE NOT EXISTS (SELECT 1 FROM remembered_keys WHERE source = ?2 AND dedup_key = ?8)`;

const JOB = 'INSERT INTO jobs (delivery, due_at, target, owner, claimed_at, attempts)';

/**
 * The statements of each append: the second is used until a delivery was stored since the last prune, and
 * continues after the highest `seq` ever used.
 */
export const APPENDS = {
  appendDelivery: [append('', ''), append('seq, ', `${HIGHEST} + 1, `)],
  appendKeyed: [append('', '', unlessRemembered), append('seq, ', `${HIGHEST} + 1, `, unlessRemembered)],
} as const;

/** The other statements that store deliveries and their jobs. */
export const APPEND_WRITES = {
  // A job without rules follows an append in the same write, and further jobs follow it. With an owner, the job is
  // stored as claimed. SQLite keeps no copies of pages to undo an INSERT of VALUES.
  addJob: `${JOB} VALUES (last_insert_rowid(), ?, ?, ?, ?, ?)`,
  addFurtherJob: `${JOB} VALUES ((SELECT delivery FROM jobs WHERE seq = last_insert_rowid()), ?, ?, ?, ?, ?)`,
  // The same after an append that may find a duplicate: each adds nothing if the step before it added nothing.
  addKeyedJob: `${JOB} SELECT last_insert_rowid(), ?, ?, ?, ?, ? WHERE changes() > 0`,
  addFurtherKeyedJob: `${JOB} SELECT delivery, ?, ?, ?, ?, ? FROM jobs WHERE seq = last_insert_rowid() AND changes() > 0`,
  addRuledJobs: `
    INSERT INTO jobs (delivery, due_at, target, order_key, blocked, run_at, priority)
    SELECT last_insert_rowid(), value ->> 2, value ->> 0, value ->> 1, ${isBlocked('(value ->> 0)', '(value ->> 1)')}, value ->> 3, value ->> 4
    FROM json_each(?) WHERE changes() > 0
    RETURNING seq`,
  reviveDuplicate: `
    UPDATE jobs SET status = 'open', attempts = 0, crashes = 0, due_at = ?1 - ${HEAD_START}, run_at = NULL, owner = NULL,
      finished_at = NULL
    WHERE status = 'dead' AND delivery = (
      SELECT seq FROM deliveries WHERE source = ?2 AND dedup_key = ?3 AND (?4 IS NULL OR substr(id, ${DIGEST_AT + 1}) = ?4))
    RETURNING seq`,
} as const;

/** Builds the steps that append a delivery. Jobs of the handover are stored as claimed. */
export type AppendSteps = (delivery: NewDelivery, handOver?: HandOver) => readonly Step[];

/** Builds steps with a clock that never goes back, because the wall clock may be set in both directions. */
export function appendStepsBy(clock: () => number): AppendSteps {
  return (delivery, handOver) => {
    const { id, source, event, dataPointer, contentType, body, receivedAt, jobs } = delivery;
    const { headers = null, trace = null, senderEvent = null, tenant } = delivery;
    const dedupKey = storedKey(delivery.dedupKey);
    const values = [id, source, event, dataPointer, contentType, body, receivedAt, dedupKey, headers, trace];
    // Few deliveries have it, and a missing parameter is NULL.
    if (senderEvent !== null) values.push(senderEvent);
    const steps: Step[] = [{ statement: dedupKey === null ? 'appendDelivery' : 'appendKeyed', values }];
    if (jobs.length > 0) {
      const now = clock();
      const dueAt = Math.min(receivedAt, now);
      if (jobs.every(isPlain)) {
        let statement: Step['statement'] = dedupKey === null ? 'addJob' : 'addKeyedJob';
        for (const { target } of jobs) {
          const claimed = handOver?.targets.includes(target) ? handOver : undefined;
          const values =
            claimed === undefined
              ? [dueAt, target, null, null, 0]
              : [now + claimed.lease, target, claimed.owner, now, 1];
          steps.push({ statement, values });
          statement = dedupKey === null ? 'addFurtherJob' : 'addFurtherKeyedJob';
        }
      } else {
        const values = [ruledJobsJson(jobs, dueAt, Math.max(0, now - Date.now()))];
        steps.push({ statement: 'addRuledJobs', values });
      }
    }
    if (tenant !== undefined)
      steps.push({ statement: 'requireVersion', values: [tenant.name, tenant.version] });
    if (dedupKey !== null) {
      steps.push({
        statement: 'reviveDuplicate',
        values: [receivedAt, source, dedupKey, tenant?.digest ?? null],
      });
    }
    return steps;
  };
}

/** Whether a job has only a target, as most have. */
const isPlain = ({ orderKey, runAt, priority }: NewJob) =>
  orderKey === null && runAt === undefined && priority === undefined;

/**
 * Encodes jobs that may have a time, a priority and a key, as `[target, order_key, due_at, run_at,
 * priority]`. Jobs without a time are due at `now`; `ahead` is how far the store's clock is ahead of the
 * system's, in milliseconds.
 */
function ruledJobsJson(jobs: readonly NewJob[], now: number, ahead: number): string {
  return JSON.stringify(
    jobs.map(({ target, orderKey, runAt, priority = 0 }) => {
      const dueAt = runAt === undefined ? now - priority * PRIORITY_LEVEL : runAt + ahead;
      return [target, storedKey(orderKey), dueAt, runAt ?? null, priority];
    }),
  );
}

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

/** What the steps `requireChange` and `requireVersion` fail with. */
export const REFUSED = {
  nothingChanged: 'The step before has changed nothing',
  tenantChanged: 'The endpoints of the tenant have another version',
} as const;

/** Whether a write has failed because the endpoints of the tenant have another version. */
export const isTenantChanged = (result: unknown): boolean =>
  result instanceof Error && result.message.includes(REFUSED.tenantChanged);

/** Stores deliveries in the commit of a step that allows it. */
export function conditionalAppends(writes: WriteQueue, appendSteps: AppendSteps): ConditionalAppends {
  async function appendIf(step: SharedStep, deliveries: readonly NewDelivery[]) {
    const appends = deliveries.map((delivery) => appendSteps(delivery));
    try {
      const rows = await writes.submit([
        writeStep(step),
        { statement: 'requireChange', values: [] },
        ...appends.flat(),
      ]);
      let next = 2;
      return appends.map(({ length }) => {
        next += length;
        return readAppended(rows.slice(next - length, next));
      });
    } catch (error) {
      if (String(error).includes(REFUSED.nothingChanged)) return undefined;
      throw error;
    }
  }
  return {
    appendIf,
    // One write each, so that one that fails does not keep the others.
    appendTaken: (taken, step) =>
      Promise.all(taken.map(async (each) => (await appendIf(step([each]), [each.delivery]))?.[0])),
  };
}
