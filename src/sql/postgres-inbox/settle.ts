import { type ClaimedJob, QUARANTINE_CRASHES } from '../../inbox/delivery.ts';
import type { Answer, Finished, Outcome } from '../../inbox/inbox.ts';
import { HEAD_START } from '../inbox-sql.ts';
import { storable } from '../postgres/text.ts';
import type { Statement } from '../postgres-pool/connection.ts';
import type { Server } from '../postgres-pool/server.ts';
import { POSTGRES, SERVER_NOW } from '../stores/sql.ts';
import { CLAIMED, claimedJob } from './claim.ts';

/** How an attempt ended. Job, owner, attempt and crashes together identify the claim. */
export interface Settlement {
  readonly job: ClaimedJob;
  readonly owner: string;
  readonly outcome: Outcome;
  /** The parameters for claiming the next job with its order key; null: none. */
  readonly next: { readonly lease: number; readonly maxBytes: number } | null;
  /** Null: the server's clock. */
  readonly now: number | null;
}

const NOW = POSTGRES.timeOr('given.now');

/** Matches only the claim that an outcome belongs to. */
const FENCE = 'jobs.owner = given.owner AND jobs.attempts = given.attempt AND jobs.crashes = given.crashes';

// Locks jobs in the order of their numbers, so that concurrent statements with the same jobs cannot deadlock.
const SETTLED = `
    locked AS MATERIALIZED (
      SELECT seq FROM jobs WHERE seq = ANY ($1::bigint[]) ORDER BY seq FOR UPDATE),
    settled AS (
      UPDATE jobs SET
        owner = NULL,
        status = CASE WHEN kind IN ('done', 'dead') THEN kind ELSE jobs.status END,
        error = CASE WHEN kind IN ('released', 'crashed') THEN jobs.error ELSE given.error END,
        due_at = CASE kind WHEN 'done' THEN jobs.due_at WHEN 'dead' THEN jobs.due_at
          WHEN 'retry' THEN ${NOW} + given.wait ELSE ${NOW} - ${HEAD_START} END,
        finished_at = CASE WHEN kind IN ('done', 'dead') THEN ${NOW} ELSE jobs.finished_at END,
        attempts = jobs.attempts - CASE WHEN kind IN ('released', 'crashed') THEN 1 ELSE 0 END,
        crashes = jobs.crashes + CASE kind WHEN 'crashed' THEN 1 ELSE 0 END,
        duration = given.duration,
        ended_by = CASE WHEN given.duration IS NULL THEN NULL ELSE jobs.owner END,
        answer_status = given.answer_status,
        answer = given.answer
      FROM unnest($1::bigint[], $2::text[], $3::int[], $4::text[], $5::text[], $6::bigint[], $7::bigint[],
        $8::int[], $9::bigint[], $10::bigint[], $11::bigint[], $12::int[], $13::text[])
        WITH ORDINALITY
        AS given (seq, owner, attempt, kind, error, wait, now, crashes, duration, next_lease, max_bytes, answer_status,
          answer, nth)
      WHERE (SELECT count(*) FROM locked) > 0 AND jobs.seq = ANY ($1::bigint[]) AND jobs.seq = given.seq AND ${FENCE}
      RETURNING given.nth, given.owner, given.next_lease, given.max_bytes, ${NOW} AS now, jobs.seq, jobs.target, jobs.order_key)`;

// Finds the first other open job of each key, because this statement's snapshot still shows the ended job as
// open.
const NEXT = `
    first AS MATERIALIZED (
      SELECT settled.*, (
        SELECT seq FROM jobs
        WHERE target = settled.target AND order_key = settled.order_key AND status = 'open' AND seq <> settled.seq
        ORDER BY seq LIMIT 1) AS next
      FROM settled WHERE next_lease IS NOT NULL),
    free AS MATERIALIZED (
      SELECT seq FROM jobs
      WHERE seq = ANY (ARRAY(SELECT next FROM first)) AND status = 'open' AND owner IS NULL
        AND due_at <= (SELECT min(now) FROM first) AND crashes < ${QUARANTINE_CRASHES}
      ORDER BY seq FOR UPDATE SKIP LOCKED),
    claimed AS (
      UPDATE jobs SET owner = first.owner, claimed_at = first.now, due_at = first.now + first.next_lease,
        attempts = jobs.attempts + 1, blocked = false
      FROM first JOIN free ON free.seq = first.next
      WHERE jobs.seq = ANY (ARRAY(SELECT seq FROM free)) AND jobs.seq = free.seq
        AND (SELECT octet_length(body) FROM deliveries WHERE deliveries.seq = jobs.delivery) <= first.max_bytes
      RETURNING first.nth, jobs.seq, jobs.attempts, jobs.crashes, true AS ordered, jobs.delivery)`;

/**
 * A statement that settles jobs. It may also record history entries and claim the next jobs of their order
 * keys.
 */
function settling(name: string, { records = false, claims = false }): Statement {
  const parts = [SETTLED, ...(records ? [recorded(14)] : []), ...(claims ? [NEXT] : [])];
  const rows = claims
    ? `SELECT settled.nth, claimed.seq, claimed.attempts, claimed.crashes, claimed.ordered,
      ${CLAIMED}
    FROM settled LEFT JOIN (claimed JOIN deliveries AS d ON d.seq = claimed.delivery) USING (nth)`
    : 'SELECT nth FROM settled';
  return { name, text: `WITH ${parts.join(', ')} ${rows}` };
}

const SETTLE = settling('settle', {});
const SETTLE_AND_RECORD = settling('settle-and-record', { records: true });
const FINISH = settling('finish', { claims: true });
const FINISH_AND_RECORD = settling('finish-and-record', { records: true, claims: true });

/**
 * Records successes, the outcome of most attempts, and does not lock the jobs first as the other statements do. It
 * updates them in the order of their numbers. If it deadlocks with a process that has lost its leases, PostgreSQL undoes
 * one of the statements, and the server's connection tries that again. The row without a number has the count of recorded
 * successes; each has a row unless all were recorded.
 */
const SETTLE_DONE = {
  name: 'settle-done',
  text: `
    WITH settled AS (
      UPDATE jobs SET owner = NULL, status = 'done', error = NULL, finished_at = ${SERVER_NOW}, duration = given.duration,
        ended_by = CASE WHEN given.duration IS NULL THEN NULL ELSE jobs.owner END,
        answer_status = given.answer_status, answer = given.answer
      FROM unnest($1::bigint[], $2::text[], $3::int[], $4::int[], $5::bigint[], $6::int[], $7::text[]) WITH ORDINALITY
        AS given (seq, owner, attempt, crashes, duration, answer_status, answer, nth)
      WHERE jobs.seq = ANY ($1::bigint[]) AND jobs.seq = given.seq AND ${FENCE}
      RETURNING given.nth)
    SELECT NULL, count(*) FROM settled
    UNION ALL SELECT nth, NULL FROM settled WHERE (SELECT count(*) FROM settled) < cardinality($1::bigint[])`,
};

const IS_SETTLED = {
  name: 'is-settled',
  text: `
    SELECT 1 FROM jobs
    WHERE seq = $1 AND owner IS NULL AND attempts = $2 AND crashes = $3 AND status = $4`,
};

/**
 * Records outcomes in one statement; resolves, for each, to whether it was recorded and to the claimed next
 * job.
 */
export async function settleAll(
  server: Server,
  settlements: readonly Settlement[],
): Promise<readonly Finished[]> {
  if (settlements.every(isPlainSuccess)) return settleDone(server, settlements);
  const claims = settlements.some(({ next }) => next !== null);
  const values = [
    settlements.map(({ job }) => job.job),
    settlements.map(({ owner }) => owner),
    settlements.map(({ job }) => job.attempt),
    settlements.map(({ outcome }) => outcome.kind),
    settlements.map(({ outcome }) => ('error' in outcome ? storable(outcome.error) : null)),
    settlements.map(({ outcome }) => (outcome.kind === 'retry' ? outcome.wait : 0)),
    settlements.map(({ now }) => now),
    settlements.map(({ job }) => job.crashes),
    settlements.map((settlement) => successOf(settlement)?.duration ?? null),
    settlements.map(({ next }) => next?.lease ?? null),
    settlements.map(({ next }) => next?.maxBytes ?? null),
    ...answersOf(settlements),
  ];
  const entries = entriesOf(settlements);
  const rows = await (entries === undefined
    ? server.write(claims ? FINISH : SETTLE, values)
    : server.write(claims ? FINISH_AND_RECORD : SETTLE_AND_RECORD, [...values, ...entries]));
  const recorded = new Set(rows.map(([nth]) => nth));
  const next = new Map(
    rows
      .filter((row) => typeof row[1] === 'number')
      .map(([nth, ...row]) => [nth, claimedJob(settlements[Number(nth) - 1]?.job.target ?? '', row)]),
  );
  return settlements.map((_, i) =>
    recorded.has(i + 1) ? { recorded: true, next: next.get(i + 1) } : { recorded: false },
  );
}

const isPlainSuccess = ({ outcome, next, now }: Settlement) =>
  outcome.kind === 'done' && next === null && now === null;

async function settleDone(server: Server, settlements: readonly Settlement[]): Promise<readonly Finished[]> {
  const ordered = settlements.toSorted((a, b) => a.job.job - b.job.job);
  const rows = await server.write(SETTLE_DONE, [
    ordered.map(({ job }) => job.job),
    ordered.map(({ owner }) => owner),
    ordered.map(({ job }) => job.attempt),
    ordered.map(({ job }) => job.crashes),
    ordered.map((settlement) => successOf(settlement)?.duration ?? null),
    ...answersOf(ordered),
  ]);
  const isAll = rows.some(([nth, count]) => nth === null && count === ordered.length);
  const recorded = new Set(isAll ? ordered : rows.map(([nth]) => ordered[Number(nth) - 1]));
  return settlements.map((settlement) => ({ recorded: recorded.has(settlement) }));
}

const isReleased = ({ kind }: Outcome) => kind === 'released' || kind === 'crashed';

/** Whether this outcome is recorded already: an earlier try may have committed without an answer. */
export async function isSettled(
  server: Server,
  { job: { job, attempt, crashes }, outcome }: Settlement,
): Promise<boolean> {
  const attempts = isReleased(outcome) ? attempt - 1 : attempt;
  const crashed = outcome.kind === 'crashed' ? 1 : 0;
  const status = outcome.kind === 'done' || outcome.kind === 'dead' ? outcome.kind : 'open';
  const rows = await server.read(IS_SETTLED, [job, attempts, crashes + crashed, status]);
  return rows.length > 0;
}

/**
 * The parts of a statement that add history entries for the settlements whose number is in `settled` as
 * `nth`. Their values start at the parameter `first`. The statement does not see rows that it adds, so it
 * keeps one fewer of the old ones.
 */
function recorded(first: number): string {
  const types = ['bigint', 'bigint', 'int', 'text', 'bigint', 'bigint', 'text', 'int', 'text', 'text', 'int'];
  const arrays = types.map((type, i) => `$${first + i}::${type}[]`).join(', ');
  return `
    entries AS MATERIALIZED (
      SELECT given.* FROM unnest(${arrays})
        AS given (nth, job, attempt, outcome, now, duration, process, status, answer, error, kept)
      JOIN settled USING (nth)),
    recorded AS (
      INSERT INTO attempts (job, attempt, outcome, started_at, duration, process, status, answer, error)
      SELECT job, attempt, outcome, ${POSTGRES.timeOr('now')} - duration, duration, process, status, answer, error
      FROM entries WHERE kept > 0 ORDER BY nth),
    trimmed AS (
      DELETE FROM attempts WHERE seq = ANY (ARRAY(
        SELECT old.seq FROM entries, LATERAL (
          SELECT seq FROM attempts WHERE attempts.job = entries.job ORDER BY job DESC, seq DESC
          OFFSET greatest(kept - 1, 0)) AS old)))`;
}

/** Whether it becomes a row of `attempts`: a success is recorded with the job, a crash by a trigger. */
function isEntry({ outcome: { kind, trace } }: Settlement): boolean {
  return trace !== undefined && kind !== 'done' && kind !== 'crashed';
}

/** What is recorded of a success in the row of the job. */
function successOf({ outcome: { kind, trace } }: Settlement) {
  return kind === 'done' ? trace : undefined;
}

/** The statuses and texts of the answers to successes; null for both if there are none, as for most handlers. */
function answersOf(settlements: readonly Settlement[]): readonly unknown[] {
  const answers = settlements.map((settlement): Answer | null => successOf(settlement)?.answer ?? null);
  if (answers.every((answer) => answer === null)) return [null, null];
  return [
    answers.map((answer) => answer?.status ?? null),
    answers.map((answer) => storable(answer?.body ?? null)),
  ];
}

/** The values of the history entries of settlements; undefined if there are none. */
function entriesOf(settlements: readonly Settlement[]): readonly unknown[] | undefined {
  const entries = settlements.flatMap((settlement, i) => {
    const { job, now, owner, outcome } = settlement;
    const { kind, trace } = outcome;
    if (trace === undefined || !isEntry(settlement)) return [];
    const { answer, duration, kept } = trace;
    const body = storable(answer?.body ?? null);
    const error = 'error' in outcome ? storable(outcome.error) : null;
    return [
      [
        i + 1,
        job.job,
        job.attempt,
        kind,
        now,
        duration,
        owner,
        answer?.status ?? null,
        body,
        error,
        kept,
      ] as const,
    ];
  });
  const [first] = entries;
  return first?.map((_, column) => entries.map((entry) => entry[column]));
}

/** Removes the entries of the deliveries in `old`. */
export const REMOVE_ATTEMPTS = `
  DELETE FROM attempts WHERE job = ANY (ARRAY(
    SELECT seq FROM jobs WHERE delivery = ANY (ARRAY(SELECT seq FROM old))))`;
