import { SUSPECT_DEATHS } from '../../../inbox/deaths.ts';
import type { ClaimedJob } from '../../../inbox/delivery.ts';
import type { Finished, Outcome } from '../../../inbox/inbox.ts';
import { HEAD_START } from '../../inbox-sql.ts';
import type { Statement } from '../pool/connection.ts';
import type { Server } from '../pool/server.ts';
import { storable } from '../text.ts';
import { bodyLength } from './bodies/body-sql.ts';
import { CLAIMED, claimedJobs } from './claimed-jobs.ts';
import { entriesOf, recorded, successDuration } from './record-attempts.ts';
import { timeOr } from './server-clock.ts';

/** How an attempt ended. The job, its owner, its attempt and its deaths together are the fence. */
export interface Settlement {
  readonly job: ClaimedJob;
  readonly owner: string;
  readonly outcome: Outcome;
  /** The claim of the next job with its order key; null: none. */
  readonly next: { readonly lease: number; readonly maxBytes: number } | null;
  /** Null: by the clock of the server. */
  readonly now: number | null;
}

const NOW = timeOr('given.now');

// Locked in the order of their numbers, so that statements with the same jobs never wait in a circle.
const SETTLED = `
    locked AS MATERIALIZED (
      SELECT seq FROM jobs WHERE seq = ANY ($1::bigint[]) ORDER BY seq FOR UPDATE),
    settled AS (
      UPDATE jobs SET
        owner = NULL,
        status = CASE WHEN kind IN ('done', 'dead') THEN kind ELSE jobs.status END,
        error = CASE WHEN kind IN ('released', 'died') THEN jobs.error ELSE given.error END,
        due_at = CASE kind WHEN 'done' THEN jobs.due_at WHEN 'dead' THEN jobs.due_at
          WHEN 'retry' THEN ${NOW} + given.wait ELSE ${NOW} - ${HEAD_START} END,
        finished_at = CASE WHEN kind IN ('done', 'dead') THEN ${NOW} ELSE jobs.finished_at END,
        attempts = jobs.attempts - CASE WHEN kind IN ('released', 'died') THEN 1 ELSE 0 END,
        deaths = jobs.deaths + CASE kind WHEN 'died' THEN 1 ELSE 0 END,
        duration = given.duration,
        ended_by = CASE WHEN given.duration IS NULL THEN NULL ELSE jobs.owner END
      FROM unnest($1::bigint[], $2::text[], $3::int[], $4::text[], $5::text[], $6::bigint[], $7::bigint[],
        $8::int[], $9::bigint[], $10::bigint[], $11::bigint[])
        WITH ORDINALITY
        AS given (seq, owner, attempt, kind, error, wait, now, deaths, duration, next_lease, max_bytes, nth)
      WHERE (SELECT count(*) FROM locked) > 0 AND jobs.seq = given.seq AND jobs.owner = given.owner AND jobs.attempts = given.attempt
        AND jobs.deaths = given.deaths
      RETURNING given.nth, given.owner, given.next_lease, given.max_bytes, ${NOW} AS now, jobs.seq, jobs.target, jobs.order_key)`;

// The first job behind each one that has ended: the statement itself still sees that one open.
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
        AND due_at <= (SELECT min(now) FROM first) AND deaths < ${SUSPECT_DEATHS}
      ORDER BY seq FOR UPDATE SKIP LOCKED),
    claimed AS (
      UPDATE jobs SET owner = first.owner, claimed_at = first.now, due_at = first.now + first.next_lease,
        attempts = jobs.attempts + 1, waits = false
      FROM first JOIN free ON free.seq = first.next
      WHERE jobs.seq = free.seq
        AND (SELECT ${bodyLength('deliveries')} FROM deliveries WHERE deliveries.seq = jobs.delivery) <= first.max_bytes
      RETURNING first.nth, jobs.seq, jobs.attempts, jobs.deaths, true AS ordered, jobs.delivery)`;

/** A statement that settles jobs. It may record entries in their histories, and claim the next ones with their keys. */
function settling(name: string, { records = false, claims = false }): Statement {
  const parts = [SETTLED, ...(records ? [recorded(12)] : []), ...(claims ? [NEXT] : [])];
  const rows = claims
    ? `SELECT settled.nth, claimed.seq, claimed.attempts, claimed.deaths, claimed.ordered,
      ${CLAIMED}
    FROM settled LEFT JOIN (claimed JOIN deliveries AS d ON d.seq = claimed.delivery) USING (nth)`
    : 'SELECT nth FROM settled';
  return { name, text: `WITH ${parts.join(', ')} ${rows}` };
}

const SETTLE = settling('settle', {});
const SETTLE_AND_RECORD = settling('settle-and-record', { records: true });
const FINISH = settling('finish', { claims: true });
const FINISH_AND_RECORD = settling('finish-and-record', { records: true, claims: true });

const IS_SETTLED = {
  name: 'is-settled',
  text: `
    SELECT 1 FROM jobs
    WHERE seq = $1 AND owner IS NULL AND attempts = $2 AND deaths = $3 AND status = $4`,
};

/** Records outcomes in one statement; resolves to whether each was recorded, and to the next job that it claimed. */
export async function settleAll(
  server: Server,
  settlements: readonly Settlement[],
): Promise<readonly Finished[]> {
  const claims = settlements.some(({ next }) => next !== null);
  const values = [
    settlements.map(({ job }) => job.job),
    settlements.map(({ owner }) => owner),
    settlements.map(({ job }) => job.attempt),
    settlements.map(({ outcome }) => outcome.kind),
    settlements.map(({ outcome }) => ('error' in outcome ? storable(outcome.error) : null)),
    settlements.map(({ outcome }) => (outcome.kind === 'retry' ? outcome.wait : 0)),
    settlements.map(({ now }) => now),
    settlements.map(({ job }) => job.deaths),
    settlements.map(successDuration),
    settlements.map(({ next }) => next?.lease ?? null),
    settlements.map(({ next }) => next?.maxBytes ?? null),
  ];
  const entries = entriesOf(settlements);
  const rows = await (entries === undefined
    ? server.write(claims ? FINISH : SETTLE, values)
    : server.write(claims ? FINISH_AND_RECORD : SETTLE_AND_RECORD, [...values, ...entries]));
  const recorded = new Set(rows.map(([nth]) => nth));
  const claimed = rows.filter((row) => typeof row[1] === 'number');
  const jobs = await claimedJobs(
    server,
    claimed.map(([nth, ...row]) => [settlements[Number(nth) - 1]?.job.target ?? '', row]),
  );
  const next = new Map(claimed.map(([nth], i) => [nth, jobs[i]]));
  return settlements.map((_, i) =>
    recorded.has(i + 1) ? { recorded: true, next: next.get(i + 1) } : { recorded: false },
  );
}

const isReleased = ({ kind }: Outcome) => kind === 'released' || kind === 'died';

/** Whether this outcome is recorded already: an earlier try may have committed without an answer. */
export async function isSettled(
  server: Server,
  { job: { job, attempt, deaths }, outcome }: Settlement,
): Promise<boolean> {
  const attempts = isReleased(outcome) ? attempt - 1 : attempt;
  const died = outcome.kind === 'died' ? 1 : 0;
  const status = outcome.kind === 'done' || outcome.kind === 'dead' ? outcome.kind : 'open';
  const rows = await server.read(IS_SETTLED, [job, attempts, deaths + died, status]);
  return rows.length > 0;
}
