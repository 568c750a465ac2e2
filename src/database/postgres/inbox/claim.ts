import { SUSPECT_DEATHS } from '../../../inbox/deaths.ts';
import type { ClaimedJob } from '../../../inbox/delivery.ts';
import type { Row, Statement } from '../pool/connection.ts';
import { sqlState } from '../pool/faults.ts';
import type { Server } from '../pool/server.ts';
import { storable, stored } from '../text.ts';
import { timeOr } from './server-clock.ts';

/** Which jobs of a target may be claimed, and for how long. */
export interface Claim {
  readonly target: string;
  readonly limit: number;
  readonly owner: string;
  /** In milliseconds. */
  readonly lease: number;
  /** Jobs that the owner is still running. */
  readonly held: readonly number[];
  /** Maximum size of the bodies in bytes. */
  readonly maxBytes: number;
  /** Whether suspects are claimed, or all others. */
  readonly suspects: boolean;
  /** Null: by the clock of the server. */
  readonly now: number | null;
}

const UNIQUE_VIOLATION = '23505';
/** Attempts while other processes claim conflicting jobs; then the next poll retries. */
const MAX_ATTEMPTS = 5;

/** Maximum number of due jobs that a claim scans. */
const WINDOW = 1_000;

const NOW = timeOr('$2');
/** Whether the owner of a job whose lease has ended is another than $4; then its process has died, or stood still. */
const DIED = 'owner IS NOT NULL AND owner <> $4';
/** The deaths of the job with the one that its claim finds out. */
const DEATHS = `(deaths + CASE WHEN ${DIED} THEN 1 ELSE 0 END)`;
const NO_SUSPECT = `${DEATHS} < ${SUSPECT_DEATHS}`;
/** Whether the owner is not running the job of the row `due` itself. */
const NOT_HELD = '(due.owner IS NULL OR due.seq <> ALL ($6::bigint[]))';
/** Whether no job with the order key of the row `due` is leased; what the owner is still running is. */
const NONE_LEASED = `
  NOT EXISTS (
    SELECT 1 FROM jobs AS leased
    WHERE leased.target = due.target AND leased.order_key = due.order_key
      AND leased.status = 'open' AND leased.owner IS NOT NULL
      AND (leased.due_at > ${NOW} OR leased.seq = ANY ($6::bigint[])))`;

/** Whether the job of the row `due` is the first one with its order key, and none of them is leased. */
const IN_ORDER = `
  (order_key IS NULL OR (
    NOT EXISTS (
      SELECT 1 FROM jobs AS earlier
      WHERE earlier.target = due.target AND earlier.order_key = due.order_key
        AND earlier.status = 'open' AND earlier.seq < due.seq)
    AND ${NONE_LEASED}))`;

/**
 * Claims the jobs of `due` whose bodies fit `$7` together, and the first one in any case if `$8`; the first column of
 * each row is `full`, whether the scan stopped at the window.
 */
const claimDue = (full: string) => `
  sized AS (
    SELECT seq, row_number() OVER oldest AS nth, sum(bytes) OVER oldest AS total
    FROM due JOIN jobs USING (seq), LATERAL (
      SELECT octet_length(body) AS bytes FROM deliveries WHERE deliveries.seq = jobs.delivery OFFSET 0) AS body
    WINDOW oldest AS (ORDER BY due_at, seq ROWS UNBOUNDED PRECEDING)),
  claimed AS (
    UPDATE jobs SET owner = $4, due_at = ${NOW} + $5::bigint, attempts = attempts + CASE WHEN ${DIED} THEN 0 ELSE 1 END,
      deaths = ${DEATHS}
    FROM sized WHERE jobs.seq = sized.seq AND (total <= $7 OR ($8 AND nth = 1))
    RETURNING jobs.seq, jobs.attempts, jobs.deaths, jobs.delivery)
  SELECT ${full}, claimed.seq, claimed.attempts, claimed.deaths,
    d.id, d.source, d.event, d.data_pointer, d.content_type, d.body, d.received_at
  FROM (VALUES (1)) AS always
  LEFT JOIN (claimed JOIN deliveries AS d ON d.seq = claimed.delivery) ON true
  ORDER BY claimed.seq`;

// Skips jobs that another process is claiming. Of the jobs with one order key only the first is claimable, and only
// while none of them is leased.
const CLAIM = {
  name: 'claim',
  text: `
    WITH edge AS MATERIALIZED (
      SELECT due_at, seq FROM jobs WHERE target = $1 AND status = 'open' AND due_at <= ${NOW}
      ORDER BY due_at, seq OFFSET ${WINDOW - 1} LIMIT 1),
    due AS (
      SELECT seq FROM jobs AS due
      WHERE target = $1 AND status = 'open' AND due_at <= ${NOW}
        AND (due_at, seq) <= (
          coalesce((SELECT due_at FROM edge), ${NOW}),
          coalesce((SELECT seq FROM edge), ${Number.MAX_SAFE_INTEGER}))
        AND ${NO_SUSPECT} AND ${NOT_HELD} AND ${IN_ORDER}
      ORDER BY due_at, seq LIMIT $3 FOR UPDATE SKIP LOCKED),
    ${claimDue('EXISTS (SELECT 1 FROM edge)')}`,
};
// Faster where most due jobs wait for their order: it looks up the first job of each key.
const CLAIM_FIRSTS = {
  name: 'claim-firsts',
  text: `
    WITH firsts AS MATERIALIZED (
      SELECT DISTINCT ON (order_key) seq FROM jobs
      WHERE target = $1 AND status = 'open' AND order_key IS NOT NULL ORDER BY order_key, seq),
    free AS MATERIALIZED (
      SELECT seq FROM firsts UNION ALL (
        SELECT seq FROM jobs WHERE target = $1 AND status = 'open' AND due_at <= ${NOW} AND order_key IS NULL
        ORDER BY due_at, seq LIMIT ${WINDOW})),
    due AS (
      SELECT due.seq FROM jobs AS due JOIN free USING (seq)
      WHERE due.status = 'open' AND due.due_at <= ${NOW} AND ${NO_SUSPECT} AND ${NOT_HELD} AND (due.order_key IS NULL OR ${NONE_LEASED})
      ORDER BY due.due_at, due.seq LIMIT $3 FOR UPDATE OF due SKIP LOCKED),
    ${claimDue('false')}`,
};
const CLAIM_SUSPECTS = {
  name: 'claim-suspects',
  text: `
    WITH due AS (
      SELECT seq FROM jobs AS due
      WHERE target = $1 AND status = 'open' AND due_at <= ${NOW} AND deaths > 0
        AND ${DEATHS} >= ${SUSPECT_DEATHS} AND ${NOT_HELD} AND ${IN_ORDER}
      ORDER BY due_at, seq LIMIT $3 FOR UPDATE SKIP LOCKED),
    ${claimDue('false')}`,
};
const DROP_ENDED_LEASES = {
  text: `
    UPDATE jobs SET owner = NULL, attempts = attempts - 1, deaths = deaths + 1
    FROM (
      SELECT seq FROM jobs
      WHERE target = $1 AND status = 'open' AND due_at <= ${NOW} AND owner IS NOT NULL AND order_key IS NOT NULL
        AND seq <> ALL ($3::bigint[])
      ORDER BY seq FOR UPDATE SKIP LOCKED) AS ended
    WHERE jobs.seq = ended.seq`,
};

/** Claims due jobs, oldest first. Rejects as `Server.write` does. */
export async function claimJobs(server: Server, claim: Claim): Promise<readonly ClaimedJob[]> {
  if (claim.suspects) return (await claimBy(CLAIM_SUSPECTS, server, claim)).jobs;
  const { isFull, jobs } = await claimBy(CLAIM, server, claim);
  const missing = claim.limit - jobs.length;
  if (!isFull || missing === 0) return jobs;
  try {
    const taken = jobs.reduce((sum, { delivery: { body } }) => sum + body.byteLength, 0);
    const rest = { ...claim, limit: missing, maxBytes: claim.maxBytes - taken };
    const { jobs: more } = await claimBy(CLAIM_FIRSTS, server, rest, jobs.length === 0);
    return [...jobs, ...more].sort((a, b) => a.job - b.job);
  } catch (error) {
    // The jobs of the first statement are leased already.
    if (jobs.length === 0) throw error;
    return jobs;
  }
}

/** `isFull`: there are more due jobs than the statement scanned. */
async function claimBy(
  statement: Statement,
  server: Server,
  { target, limit, owner, lease, held, maxBytes, now }: Claim,
  takesFirst = true,
): Promise<{ readonly isFull: boolean; readonly jobs: readonly ClaimedJob[] }> {
  const name = storable(target);
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    try {
      const values = [name, now, limit, owner, lease, held, maxBytes, takesFirst];
      const rows = await server.write(statement, values);
      const claimed = rows.filter(([, seq]) => seq !== null);
      return { isFull: rows[0]?.[0] === true, jobs: claimed.map((row) => claimedJob(target, row)) };
    } catch (error) {
      if (sqlState(error) !== UNIQUE_VIOLATION) throw error;
      // Another process has claimed a job with the same order key, or an ended lease still blocks the key.
      await server.write(DROP_ENDED_LEASES, [name, now, held]);
    }
  }
  return { isFull: false, jobs: [] };
}

function claimedJob(target: string, [, seq, attempts, deaths, ...columns]: Row): ClaimedJob {
  type Columns = [string, string, string | null, string, string | null, Uint8Array, number];
  const [id, source, event, dataPointer, contentType, body, receivedAt] = columns as Columns;
  return {
    job: Number(seq),
    target,
    attempt: Number(attempts),
    deaths: Number(deaths),
    delivery: {
      id,
      source: stored(source),
      event: stored(event),
      dataPointer: stored(dataPointer),
      contentType: stored(contentType),
      body,
      receivedAt,
    },
  };
}
