import type { StoreUnavailableError } from '../../core/errors.ts';
import { GenerationalCache } from '../../core/generational-cache.ts';
import { type ClaimedJob, QUARANTINE_CRASHES } from '../../inbox/delivery.ts';
import type { TargetClaim } from '../../inbox/inbox.ts';
import type { DatabaseObserver } from '../batch-queue.ts';
import { storable, stored } from '../postgres/text.ts';
import { singleWrite } from '../postgres/write-queue.ts';
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

/** The parameters of a claim, beside the targets. */
interface Claimant {
  readonly owner: string;
  /** In milliseconds. */
  readonly lease: number;
  /** Jobs that the owner is still running. */
  readonly held?: readonly number[];
  /** Maximum size of the bodies of a target in bytes. */
  readonly maxBytes?: number;
  /** Default: the server's clock. */
  readonly now?: number;
}

/** The values of all claims, from `$2`; `limit` is `$3`. */
function valuesOf(
  limit: unknown,
  { owner, lease, held = [], maxBytes = Number.MAX_SAFE_INTEGER, now }: Claimant,
): unknown[] {
  return [now ?? null, limit, owner, lease, held, maxBytes];
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
/** Due jobs of a target that are not blocked and that the owner is not still running. */
const dueOf = (target: string) => `
  target = ${target} AND status = 'open' AND NOT blocked AND due_at <= ${NOW}
  AND (owner IS NULL OR seq <> ALL ($6::bigint[]))`;
const DUE = dueOf('$1');
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
 * Claims the jobs of `due`, of each target `asked` those whose bodies together fit `$7`, and always the first one.
 * Each row begins with `looked`, which tells of the jobs that were examined.
 */
const claimDue = (looked: string) => `
  sized AS (
    SELECT due.seq AS job, asked, row_number() OVER oldest AS nth, sum(octet_length(d.body)) OVER oldest AS total, ${CLAIMED}
    FROM due, LATERAL (SELECT * FROM deliveries WHERE deliveries.seq = due.delivery OFFSET 0) AS d
    WINDOW oldest AS (PARTITION BY asked ORDER BY due.due_at, due.seq ROWS UNBOUNDED PRECEDING)),
  claimed AS (
    UPDATE jobs SET owner = $4, claimed_at = ${NOW}, due_at = ${NOW} + $5::bigint, attempts = attempts + CASE WHEN ${CRASHED} THEN 0 ELSE 1 END,
      crashes = ${CRASHES}
    FROM sized AS d WHERE jobs.seq = d.job AND (total <= $7 OR nth = 1)
    RETURNING jobs.priority, d.asked, d.job, jobs.attempts, jobs.crashes, jobs.order_key IS NOT NULL AS ordered, ${CLAIMED})
  SELECT ${looked}, d.asked, d.job, d.attempts, d.crashes, d.ordered, ${CLAIMED}
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
      SELECT 1 AS asked, seq, due_at, delivery FROM jobs
      WHERE seq = ANY (ARRAY(
          SELECT seq FROM looked WHERE order_key IS NULL OR seq IN (SELECT head FROM heads)))
        AND (SELECT count(*) FROM waiting) >= 0 AND ${STILL_DUE}
      ORDER BY due_at, seq LIMIT $3 FOR UPDATE SKIP LOCKED),
    ${claimDue('(SELECT count(*) FROM looked) = $8, (SELECT count(*) FROM waiting)')}`,
};
// Claims nothing of a target if one of its next due jobs has an order key, and tells which targets have one. Where none
// has, all that `CLAIM` does for keys would cost a quarter of a claim.
const claimUnordered = (name: string, looked: string) => ({
  name,
  text: `
    WITH looked AS MATERIALIZED (${looked}),
    keyed AS MATERIALIZED (SELECT array_agg(asked) AS targets FROM looked WHERE order_key IS NOT NULL),
    due AS (SELECT asked, seq, due_at, delivery FROM looked WHERE (asked = ANY ((SELECT targets FROM keyed)::int[])) IS NOT TRUE),
    ${claimDue('(SELECT targets FROM keyed)')}`,
});
const nextOf = (target: string, limit: string) => `
  SELECT seq, due_at, order_key, delivery FROM jobs
  WHERE ${dueOf(target)} AND ${CRASHES} < ${QUARANTINE_CRASHES}
  ORDER BY due_at, seq LIMIT ${limit} FOR UPDATE SKIP LOCKED`;
// For a target alone, as handlers have it, without the join.
const CLAIM_UNORDERED = claimUnordered(
  'claim-unordered',
  `SELECT 1 AS asked, found.* FROM (${nextOf('$1', '$3')}) AS found`,
);
const CLAIM_EACH = claimUnordered(
  'claim-each',
  `SELECT asked.nth::int AS asked, found.*
    FROM unnest($1::text[], $3::int[]) WITH ORDINALITY AS asked (target, jobs, nth),
      LATERAL (${nextOf('asked.target', 'asked.jobs')}) AS found`,
);
const CLAIM_QUARANTINED = {
  name: 'claim-quarantined',
  text: `
    WITH due AS (
      SELECT 1 AS asked, seq, due_at, delivery FROM jobs AS due
      WHERE ${DUE} AND crashes > 0 AND ${CRASHES} >= ${QUARANTINE_CRASHES}
        AND (order_key IS NULL OR seq = ${headOf('due.order_key')})
      ORDER BY due_at, seq LIMIT $3 FOR UPDATE SKIP LOCKED),
    ${claimDue('false, 0')}`,
};

/** Size of the names of targets that are kept, in bytes. */
const MAX_ORDERED = 256 * 1024;
/** Claims of targets with order keys that run at the same time: a third of the connections for writes. */
const ORDERED_AT_ONCE = 2;

type Claimed = readonly ClaimedJob[] | StoreUnavailableError;

/** Claims due jobs, oldest first. Only an empty result can mean that a target has none left. */
export class Claims {
  readonly #server: Server;
  readonly #observer: DatabaseObserver;
  /** Targets that had jobs with order keys at their last claim. */
  readonly #ordered = new GenerationalCache<true>(MAX_ORDERED);

  constructor(server: Server, observer: DatabaseObserver) {
    this.#server = server;
    this.#observer = observer;
  }

  /** Claims jobs of targets: of all without order keys together, then of each of the others. Resolves to those of each. */
  async each(targets: readonly TargetClaim[], claimant: Claimant): Promise<readonly Claimed[]> {
    const results = new Map<TargetClaim, Claimed>();
    const unordered = targets.filter(({ target }) => this.#ordered.get(target) === undefined);
    if (unordered.length > 0) {
      const found = await this.#write(() => unorderedOf(this.#server, unordered, claimant));
      for (const [i, each] of unordered.entries()) {
        const claimed = found instanceof Error ? found : found[i];
        if (claimed !== undefined) results.set(each, claimed);
      }
    }
    const ordered = targets.filter((each) => !results.has(each)).values();
    const claimNext = async () => {
      for (const each of ordered) results.set(each, await this.#write(() => this.#ofKeys(each, claimant)));
    };
    await Promise.all(Array.from({ length: ORDERED_AT_ONCE }, claimNext));
    return targets.map((each) => results.get(each) ?? []);
  }

  /** Claims quarantined jobs, which `each` never does. */
  quarantined(claim: TargetClaim, claimant: Claimant): Promise<Claimed> {
    return this.#write(async () => (await claimBy(CLAIM_QUARANTINED, this.#server, claim, claimant)).jobs);
  }

  async #ofKeys(claim: TargetClaim, claimant: Claimant): Promise<readonly ClaimedJob[]> {
    const { target } = claim;
    for (let window = claim.limit + MARGIN; ; window = WINDOW) {
      const { isFull, waiting, jobs } = await claimBy(CLAIM, this.#server, claim, claimant, window);
      this.#ordered.delete(target);
      if (jobs.some((job) => job.ordered)) this.#ordered.set(target, true, 2 * target.length + 100);
      const isStuck = window === WINDOW && waiting === 0;
      if (jobs.length > 0 || !isFull || isStuck) return jobs;
    }
  }

  #write<T>(work: () => Promise<T>): Promise<T | StoreUnavailableError> {
    return singleWrite(this.#observer, work).catch((error: StoreUnavailableError) => error);
  }
}

/** The jobs of each target; undefined for a target with order keys. */
async function unorderedOf(
  server: Server,
  targets: readonly TargetClaim[],
  claimant: Claimant,
): Promise<readonly (readonly ClaimedJob[] | undefined)[]> {
  const names = targets.map(({ target }) => storable(target));
  const limits = targets.map(({ limit }) => limit);
  const isOne = targets.length === 1;
  const rows = isOne
    ? await server.write(CLAIM_UNORDERED, [names[0], ...valuesOf(limits[0], claimant)])
    : await server.write(CLAIM_EACH, [names, ...valuesOf(limits, claimant)]);
  const jobs: ClaimedJob[][] = targets.map(() => []);
  for (const [, asked, ...row] of rows) {
    const nth = Number(asked) - 1;
    if (asked !== null) jobs[nth]?.push(claimedJob(targets[nth]?.target ?? '', row));
  }
  const keyed = new Set(rows[0]?.[0] as readonly number[] | null);
  return jobs.map((found, i) => (keyed.has(i + 1) ? undefined : found));
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
  { target, limit }: TargetClaim,
  claimant: Claimant,
  window?: number,
): Promise<Looked> {
  const values = [storable(target), ...valuesOf(limit, claimant)];
  if (window !== undefined) values.push(window);
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    try {
      const rows = await server.write(statement, values);
      const [isFull, waiting] = rows[0] ?? [];
      return {
        isFull: isFull === true,
        waiting: Number(waiting),
        jobs: rows.flatMap(([, , asked, ...row]) => (asked === null ? [] : [claimedJob(target, row)])),
      };
    } catch (error) {
      // Another process has claimed a job with the same order key.
      if (sqlState(error) !== UNIQUE_VIOLATION) throw error;
    }
  }
  return { isFull: false, waiting: 0, jobs: [] };
}
