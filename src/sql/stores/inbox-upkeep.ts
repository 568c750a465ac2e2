import { whenReady } from '../../core/scheduler.ts';
import { QUARANTINE_CRASHES } from '../../inbox/delivery.ts';
import { ALERT_CHECKPOINT, ALERT_PREFIX, type Inbox, MAX_COUNTED } from '../../inbox/inbox.ts';
import { counted, type DatabaseObserver } from '../batch-queue.ts';
import { BESIDE_ENDPOINTS, beyond, isEndpoint, openJobs, storedKey, WAITING_TARGETS } from '../inbox-sql.ts';
import { type Dialect, type Query, queries, type Sql } from './sql.ts';

/** Maximum number of keys that a step forgets by age, and again by count. */
const WINDOW = 256;

/**
 * Up to `$2` open jobs that were due by `$1`, of targets whose last heartbeat was not later. SQLite begins with
 * the targets because of CROSS JOIN; they are few.
 */
const orphans = (condition: string) => `
  SELECT seq FROM (
    SELECT jobs.seq FROM targets CROSS JOIN jobs
    WHERE jobs.target = targets.name AND targets.seen_at <= $1 AND jobs.status = 'open' AND ${condition} AND jobs.due_at <= $1 LIMIT $2 + 0)`;

/** Those of the targets `$1` that have an unblocked job that is due by `$2`; looks for each target alone. */
const dueTargets = (sql: Dialect, jobs = 'jobs', condition = '') => `
  SELECT wanted.target FROM ${sql.rows('$1', { target: 'text' })} AS wanted
  WHERE (
    SELECT seq FROM ${jobs}
    WHERE jobs.target = wanted.target AND status = 'open' AND NOT blocked AND due_at <= ${sql.timeOr('$2')} ${condition}
    ORDER BY due_at, seq LIMIT 1) IS NOT NULL`;

/**
 * The next targets with open jobs after `$1` and before `$2`, at most `$3` of them, each with whether it has a job that is
 * due by `$4`: two index lookups per target.
 */
const waitingTargets = (sql: Dialect, jobs = 'jobs', condition = '') => ({
  long: `
    WITH RECURSIVE waiting (target, nth) AS (
      SELECT (SELECT min(target) FROM ${jobs} WHERE status = 'open' AND NOT blocked ${condition} AND target > $1 AND target < $2), 1
      UNION ALL
      SELECT (
        SELECT min(jobs.target) FROM ${jobs}
        WHERE status = 'open' AND NOT blocked ${condition} AND jobs.target > waiting.target AND jobs.target < $2), nth + 1
      FROM waiting WHERE waiting.target IS NOT NULL AND nth < CAST($3 AS bigint))
    SELECT target, (
      SELECT CASE WHEN due_at <= ${sql.timeOr('$4')} THEN 1 ELSE 0 END FROM ${jobs}
      WHERE jobs.target = waiting.target AND status = 'open' AND NOT blocked ${condition} ORDER BY due_at, seq LIMIT 1)
    FROM waiting WHERE target IS NOT NULL`,
});

export const UPKEEP_QUERIES = queries('inbox', (sql) => ({
  due: dueTargets(sql),
  waiting: waitingTargets(sql),
  waitingQuarantined: waitingTargets(
    sql,
    sql.either('jobs INDEXED BY jobs_quarantined', 'jobs'),
    `AND crashes > 0 AND crashes + CASE WHEN owner IS NULL THEN 0 ELSE 1 END >= ${QUARANTINE_CRASHES}`,
  ),
  dueQuarantined: dueTargets(
    sql,
    sql.either('jobs INDEXED BY jobs_quarantined', 'jobs'),
    `AND crashes > 0 AND crashes + CASE WHEN owner IS NULL THEN 0 ELSE 1 END >= ${QUARANTINE_CRASHES}`,
  ),
  idOf: `
    SELECT id FROM deliveries WHERE source = $1 AND dedup_key = $2
    UNION ALL SELECT id FROM remembered_keys WHERE source = $1 AND dedup_key = $2 LIMIT 1`,
  // Keys of deliveries received before `$1`, and the oldest keys as long as there are more than `$2`. Leaves
  // out keys that another process is forgetting.
  forgetKeys: `
    WITH old AS MATERIALIZED (
      SELECT seq FROM remembered_keys WHERE received_at < $1 ORDER BY received_at LIMIT ${WINDOW} ${sql.lockFree}),
    excess AS MATERIALIZED (
      SELECT seq FROM remembered_keys WHERE seq <= (SELECT max(seq) FROM remembered_keys) - $2
      ORDER BY seq LIMIT ${WINDOW} ${sql.lockFree})
    DELETE FROM remembered_keys WHERE ${sql.among('seq', 'SELECT seq FROM old UNION SELECT seq FROM excess')}
    RETURNING seq`,
  // Locked jobs are being settled, or claimed by another process; the next renewal will tell. Waits for no
  // lock.
  renew: `
    UPDATE jobs SET due_at = ${sql.timeOr('$3')} + $4
    WHERE ${sql.among('seq', `SELECT seq FROM jobs WHERE owner = $1 AND status = 'open' AND ${sql.isIn('seq', '$2', 'bigint')} ORDER BY seq ${sql.lockFree}`)}
    RETURNING seq`,
  held: `SELECT seq FROM jobs WHERE owner = $1 AND status = 'open' AND ${sql.isIn('seq', '$2', 'bigint')}`,
  // Targets with open jobs get their first heartbeat. Ordered by name, so that concurrent heartbeats do not
  // deadlock.
  heartbeat: `
    ${WAITING_TARGETS}
    INSERT INTO targets (name, seen_at)
    SELECT name, $1 FROM (
      SELECT name FROM ${sql.rows('$2', { name: 'text' })} AS mine
      UNION SELECT target FROM waiting
      WHERE target IS NOT NULL AND NOT (${isEndpoint('target')}) AND target NOT IN (SELECT name FROM targets)) AS either
    ORDER BY name${sql.either('', ' COLLATE "C"')}
    ON CONFLICT (name) DO UPDATE SET seen_at = ${sql.greatest('targets.seen_at', 'excluded.seen_at')}`,
  expireOrphans: `
    WITH orphans AS MATERIALIZED (
      SELECT seq FROM jobs
      WHERE ${sql.among('seq', `${orphans('NOT blocked')} AS heads UNION ALL ${orphans('order_key IS NOT NULL AND blocked')} AS others LIMIT $2 + 0`)}
        AND status = 'open' AND due_at <= $1
      ORDER BY seq ${sql.lockFree})
    UPDATE jobs SET status = 'dead', error = $3, finished_at = $4, owner = NULL
    WHERE ${sql.among('seq', 'SELECT seq FROM orphans')} RETURNING target`,
  // Counts open, dead and planned jobs, and finds the oldest waiting ones: the receipt of the oldest delivery
  // with an open job without a planned time, and the oldest planned time that has come. Jobs behind a planned
  // job in the order of their key are left out, and so are the jobs of endpoints: these may fail for days.
  backlog: {
    long: `
      ${WAITING_TARGETS},
      held_keys AS (
        SELECT jobs.target, jobs.order_key FROM waiting JOIN jobs ON jobs.target = waiting.target
        WHERE status = 'open' AND NOT blocked AND due_at > (SELECT ${sql.timeOr('$1')})
          AND run_at > (SELECT ${sql.timeOr('$1')}) AND order_key IS NOT NULL),
      open_jobs AS (
        SELECT delivery, run_at,
          order_key IS NULL OR (target, order_key) NOT IN (SELECT target, order_key FROM held_keys) AS counts
        FROM (${BESIDE_ENDPOINTS.map((range) => openJobs('delivery, target, order_key, run_at', `AND ${range}`)).join(' UNION ALL ')}) AS each)
      SELECT open, ${BESIDE_ENDPOINTS.map((range) => `(SELECT count(*) FROM jobs WHERE status = 'dead' AND ${range})`).join(' + ')}, planned,
        (SELECT received_at FROM deliveries WHERE seq = oldest), run_at
      FROM (
        SELECT count(*) AS open, count(*) FILTER (WHERE run_at > (SELECT ${sql.timeOr('$1')})) AS planned,
          min(delivery) FILTER (WHERE run_at IS NULL AND counts) AS oldest,
          min(run_at) FILTER (WHERE run_at <= (SELECT ${sql.timeOr('$1')}) AND counts) AS run_at
        FROM open_jobs) AS total`,
  },
  // Per target, the jobs that died after the checkpoint of its alerts and by `$1`, if the checkpoint is at
  // least `$2` older: one index lookup per target (a loose index scan) plus the entries that are counted.
  deadLetters: {
    long: `
      WITH RECURSIVE dying (target) AS (
        SELECT min(target) FROM jobs WHERE status = 'dead'
        UNION ALL
        SELECT (SELECT min(jobs.target) FROM jobs WHERE status = 'dead' AND jobs.target > ${beyond('dying.target')})
        FROM dying WHERE dying.target IS NOT NULL),
      alerted AS (
        SELECT dying.target, coalesce(checkpoints.at, 0) AS since
        FROM dying LEFT JOIN checkpoints ON checkpoints.name = '${ALERT_CHECKPOINT}' || dying.target
        WHERE dying.target IS NOT NULL AND NOT (${isEndpoint('dying.target')})
          AND substr(dying.target, 1, ${ALERT_PREFIX.length}) <> '${ALERT_PREFIX}'),
      counted AS (
        SELECT target, since, (
          SELECT count(*) FROM (
            SELECT 1 FROM jobs
            WHERE status = 'dead' AND jobs.target = alerted.target AND finished_at > since
              AND finished_at <= CAST($1 AS bigint) LIMIT ${MAX_COUNTED}) AS dead) AS count
        FROM alerted WHERE since <= CAST($1 AS bigint) - CAST($2 AS bigint))
      SELECT target, count, since FROM counted WHERE count > 0`,
  },
}));

/** The parts of an inbox that both engines share. */
type Upkeep = Pick<
  Inbox,
  | 'due'
  | 'waiting'
  | 'dueQuarantined'
  | 'idOf'
  | 'renew'
  | 'recordHeartbeat'
  | 'expireOrphans'
  | 'backlog'
  | 'forgetKeys'
  | 'deadLetters'
>;

interface UpkeepOptions {
  readonly sql: Sql;
  /** Runs the writes of retention, between those of the doors. */
  readonly background: Sql;
  readonly observer: DatabaseObserver;
  /** The time by which jobs are due; null: the server's clock. */
  clock(): number | null;
  /** The time by which planned jobs count as such; null: the server's clock. */
  wallClock(): number | null;
}

/** Makes those parts. */
export function inboxUpkeep({ sql, background, observer, clock, wallClock }: UpkeepOptions): Upkeep {
  const { idOf, renew, held, heartbeat, expireOrphans, backlog, forgetKeys, deadLetters } = UPKEEP_QUERIES;
  const dueTally = observer.reads('inbox.due');
  const backlogTally = observer.reads('inbox.backlog');
  const dueBy = (query: Query) => (targets: readonly string[], now?: number) =>
    whenReady(
      counted(dueTally, () => sql.read(query, { rows: targets.map((target) => [target]) }, now ?? clock())),
      (rows) => rows.map(([target]) => String(target)),
    );
  return {
    due: dueBy(UPKEEP_QUERIES.due),
    dueQuarantined: dueBy(UPKEEP_QUERIES.dueQuarantined),

    waiting(prefix, { after, limit, quarantined = false, now }) {
      const query = quarantined ? UPKEEP_QUERIES.waitingQuarantined : UPKEEP_QUERIES.waiting;
      // The prefix ends in a colon; the semicolon follows it.
      const end = `${prefix.slice(0, -1)};`;
      return whenReady(
        counted(dueTally, () => sql.read(query, after || prefix, end, limit, now ?? clock())),
        (rows) => ({
          due: rows.flatMap(([target, isDue]) => (Number(isDue) === 1 ? [String(target)] : [])),
          last: rows.length < limit ? undefined : String(rows.at(-1)?.[0]),
        }),
      );
    },

    idOf: (source, dedupKey) =>
      whenReady(sql.read(idOf, source, storedKey(dedupKey)), ([row]) => row && String(row[0])),

    async renew(owner, jobs, lease, now) {
      const [rows = [], own = []] = await sql.write(
        [renew, owner, jobs, now ?? clock(), lease],
        [held, owner, jobs],
      );
      const [renewed, left] = [rows, own].map((all) => new Set(all.map(([seq]) => Number(seq))));
      return {
        renewed: jobs.filter((job) => renewed?.has(job)),
        lost: jobs.filter((job) => !left?.has(job)),
      };
    },

    async recordHeartbeat(targets, now) {
      await sql.write([heartbeat, now, { rows: targets.map((target) => [target]) }]);
    },

    async expireOrphans(before, limit, error, now) {
      const [expired = []] = await sql.write([expireOrphans, before, limit, error, now]);
      return expired.map(([target]) => String(target));
    },

    backlog: () =>
      whenReady(
        counted(backlogTally, () => sql.read(backlog, wallClock())),
        ([row = []]) => {
          type Columns = [number?, number?, number?, (number | null)?, (number | null)?];
          const [open = 0, dead = 0, planned = 0, ...oldest] = row as Columns;
          const times = oldest.filter((time) => typeof time === 'number');
          const oldestAt = times.length === 0 ? undefined : Math.min(...times);
          return { open, dead, oldestAt, ...(planned > 0 && { planned }) };
        },
      ),

    async forgetKeys(before, max) {
      const [forgotten = []] = await background.write([forgetKeys, before, max]);
      const removed = forgotten.length;
      return { removed, looked: removed, isLast: removed < WINDOW };
    },

    deadLetters: (until, interval) =>
      whenReady(sql.read(deadLetters, until, interval), (rows) =>
        rows.map(([target, count, since]) => ({
          target: String(target),
          count: Number(count),
          since: Number(since),
        })),
      ),
  };
}
