import { type ClaimedJob, QUARANTINE_CRASHES } from '../../inbox/delivery.ts';
import { storable, stored } from '../postgres/text.ts';
import type { Row, Statement } from '../postgres-pool/connection.ts';
import { sqlState } from '../postgres-pool/connection.ts';
import type { Server } from '../postgres-pool/server.ts';
import { POSTGRES } from '../stores/sql.ts';

/** The delivery columns of a claimed job, from row `d`. */
export const CLAIMED =
  'd.id, d.source, d.event, d.data_pointer, d.content_type, d.headers, d.received_at, d.body, d.trace, d.sender_event';

/** The columns of a claimed job: number, attempts, crashes, whether it has an order key, and `CLAIMED`. */
type Columns = readonly [
  number,
  number,
  number,
  boolean,
  string,
  string,
  string | null,
  string,
  string | null,
  string | null,
  number,
  Uint8Array,
  string | null,
  string | null,
];

/** Reads a job of `target` from its row. */
export function claimedJob(target: string, row: Row): ClaimedJob {
  const [job, attempt, crashes, ordered, id, source, event, dataPointer, contentType, ...rest] =
    row as unknown as Columns;
  const [headers, receivedAt, body, trace, senderEvent] = rest;
  const names = { source: stored(source), event: stored(event), senderEvent: stored(senderEvent) };
  const texts = { ...names, dataPointer: stored(dataPointer) };
  const delivery = { id, ...texts, contentType: stored(contentType), headers, trace, body, receivedAt };
  return { job, target, attempt, crashes, ordered, delivery };
}

/** The parameters of a claim. */
interface Claim {
  readonly target: string;
  readonly limit: number;
  readonly owner: string;
  /** In milliseconds. */
  readonly lease: number;
  /** Jobs that the owner is still running. */
  readonly held: readonly number[];
  /** Maximum size of the bodies in bytes. */
  readonly maxBytes: number;
  /** Whether to claim quarantined jobs, or all others. */
  readonly quarantined: boolean;
  /** Null: the server's clock. */
  readonly now: number | null;
}

const UNIQUE_VIOLATION = '23505';
/**
 * Maximum number of attempts while other processes claim conflicting jobs; after that the next poll retries.
 */
const MAX_ATTEMPTS = 5;

/** How many due jobs a claim examines beyond its limit: some may be locked or become blocked. */
const MARGIN = 64;
/** How many it examines if those were not enough. */
const WINDOW = 1_000;

const NOW = POSTGRES.timeOr('$2');
/**
 * Whether a job whose lease has ended belonged to another owner than $4, whose process must have crashed or
 * stalled.
 */
const CRASHED = 'owner IS NOT NULL AND owner <> $4';
/** The crashes of a job, including one found by this claim. */
const CRASHES = `(crashes + CASE WHEN ${CRASHED} THEN 1 ELSE 0 END)`;
/** Due jobs that are not blocked and that the owner is not still running. */
const DUE = `
  target = $1 AND status = 'open' AND NOT blocked AND due_at <= ${NOW}
  AND (owner IS NULL OR seq <> ALL ($6::bigint[]))`;
/**
 * Whether a job found by its number is open, written so that no partial index of open jobs can serve it: with the
 * statistics of a time with few open jobs the planner would scan such an index, with its every job, for a few numbers.
 */
const IS_OPEN = `status || '' = 'open'`;
/** The same condition as `DUE` for jobs found by number. */
const STILL_DUE = DUE.replace(`status = 'open'`, IS_OPEN);

/** The head of the order key `key`: its leased job if there is one, else its first. */
const headOf = (key: string) => `
  coalesce(
    (SELECT seq FROM jobs WHERE target = $1 AND order_key = ${key} AND status = 'open' AND owner IS NOT NULL),
    (SELECT seq FROM jobs WHERE target = $1 AND order_key = ${key} AND status = 'open' ORDER BY seq LIMIT 1))`;

/**
 * Claims the jobs of `due` whose bodies together fit `$7`, and always the first one. Each row begins with
 * `looked`: whether there are more due jobs than the statement examined, and how many of the examined ones
 * became blocked.
 */
const claimDue = (looked: string) => `
  sized AS (
    SELECT due.seq AS job, row_number() OVER oldest AS nth, sum(octet_length(d.body)) OVER oldest AS total, ${CLAIMED}
    FROM due, LATERAL (SELECT * FROM deliveries WHERE deliveries.seq = due.delivery OFFSET 0) AS d
    WINDOW oldest AS (ORDER BY due.due_at, due.seq ROWS UNBOUNDED PRECEDING)),
  claimed AS (
    UPDATE jobs SET owner = $4, claimed_at = ${NOW}, due_at = ${NOW} + $5::bigint, attempts = attempts + CASE WHEN ${CRASHED} THEN 0 ELSE 1 END,
      crashes = ${CRASHES}
    FROM sized AS d WHERE jobs.seq = d.job AND (total <= $7 OR nth = 1)
    RETURNING jobs.priority, d.job, jobs.attempts, jobs.crashes, jobs.order_key IS NOT NULL AS ordered, ${CLAIMED})
  SELECT ${looked}, d.job, d.attempts, d.crashes, d.ordered, ${CLAIMED}
  FROM (VALUES (1)) AS always LEFT JOIN claimed AS d ON true
  ORDER BY d.priority DESC, d.job`;

// Skips jobs that another process is claiming, and waits for no lock. Jobs that are not the head of their key
// become blocked; the head is locked meanwhile, so that its end happens afterwards and finds them blocked. A head
// that precedes nothing but by its lease must have it once it is locked: the snapshot may be older.
const CLAIM = {
  name: 'claim',
  text: `
    WITH looked AS MATERIALIZED (
      SELECT seq, due_at, order_key FROM jobs WHERE ${DUE} AND ${CRASHES} < ${QUARANTINE_CRASHES}
      ORDER BY due_at, seq LIMIT $8),
    heads AS MATERIALIZED (
      SELECT order_key, ${headOf('keys.order_key')} AS head
      FROM (SELECT DISTINCT order_key FROM looked WHERE order_key IS NOT NULL) AS keys),
    behind AS MATERIALIZED (
      SELECT looked.seq, heads.head FROM looked JOIN heads USING (order_key) WHERE looked.seq <> heads.head),
    held AS MATERIALIZED (
      SELECT seq, owner FROM jobs WHERE seq = ANY (ARRAY(SELECT DISTINCT head FROM behind)) AND ${IS_OPEN} AND NOT blocked
      ORDER BY seq FOR UPDATE SKIP LOCKED),
    free AS MATERIALIZED (
      SELECT seq FROM jobs
      WHERE seq = ANY (ARRAY(
          SELECT behind.seq FROM behind JOIN held ON held.seq = behind.head
          WHERE behind.seq > behind.head OR held.owner IS NOT NULL))
        AND ${IS_OPEN} AND NOT blocked AND owner IS NULL
      ORDER BY seq FOR UPDATE SKIP LOCKED),
    waiting AS (UPDATE jobs SET blocked = true FROM free WHERE jobs.seq = free.seq RETURNING 1),
    due AS (
      SELECT seq, due_at, delivery FROM jobs
      WHERE seq = ANY (ARRAY(
          SELECT seq FROM looked WHERE order_key IS NULL OR seq IN (SELECT head FROM heads)))
        AND (SELECT count(*) FROM waiting) >= 0 AND ${STILL_DUE}
      ORDER BY due_at, seq LIMIT $3 FOR UPDATE SKIP LOCKED),
    ${claimDue('(SELECT count(*) FROM looked) = $8, (SELECT count(*) FROM waiting)')}`,
};
const CLAIM_QUARANTINED = {
  name: 'claim-quarantined',
  text: `
    WITH due AS (
      SELECT seq, due_at, delivery FROM jobs AS due
      WHERE ${DUE} AND crashes > 0 AND ${CRASHES} >= ${QUARANTINE_CRASHES}
        AND (order_key IS NULL OR seq = ${headOf('due.order_key')})
      ORDER BY due_at, seq LIMIT $3 FOR UPDATE SKIP LOCKED),
    ${claimDue('false, 0')}`,
};

/**
 * Claims due jobs, oldest first. Only an empty result can mean that none are left. Rejects as `Server.write`
 * does.
 */
export async function claimJobs(server: Server, claim: Claim): Promise<readonly ClaimedJob[]> {
  if (claim.quarantined) return (await claimBy(CLAIM_QUARANTINED, server, claim)).jobs;
  for (let window = claim.limit + MARGIN; ; window = WINDOW) {
    const { isFull, waiting, jobs } = await claimBy(CLAIM, server, claim, window);
    const isStuck = window === WINDOW && waiting === 0;
    if (jobs.length > 0 || !isFull || isStuck) return jobs;
  }
}

interface Looked {
  /** Whether there are more due jobs than the statement examined. */
  readonly isFull: boolean;
  /** How many of the examined jobs became blocked. */
  readonly waiting: number;
  readonly jobs: readonly ClaimedJob[];
}

async function claimBy(
  statement: Statement,
  server: Server,
  { target, limit, owner, lease, held, maxBytes, now }: Claim,
  window?: number,
): Promise<Looked> {
  const values = [storable(target), now, limit, owner, lease, held, maxBytes];
  if (window !== undefined) values.push(window);
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    try {
      const rows = await server.write(statement, values);
      const [isFull, waiting] = rows[0] ?? [];
      const jobs = rows.map((row) => row.slice(2)).filter(([seq]) => seq !== null);
      return {
        isFull: isFull === true,
        waiting: Number(waiting),
        jobs: jobs.map((row) => claimedJob(target, row)),
      };
    } catch (error) {
      // Another process has claimed a job with the same order key.
      if (sqlState(error) !== UNIQUE_VIOLATION) throw error;
    }
  }
  return { isFull: false, waiting: 0, jobs: [] };
}
