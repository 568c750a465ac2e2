import { type MaybePromise, whenReady } from '../../core/scheduler.ts';
import type { AttemptEntry } from '../../inbox/inbox.ts';
import type {
  DeliveryCounts,
  DeliveryCursor,
  DeliveryDetail,
  DeliveryFilter,
  DeliveryLog,
  DeliveryPage,
  DeliveryStatus,
  DeliverySummary,
  FailingTargets,
  JobDetail,
  ReplayedJob,
} from '../../inbox/operations.ts';
import {
  BESIDE_ENDPOINTS,
  beyond,
  HEAD_START,
  isBlocked,
  isEndpoint,
  storedKey,
  WAITING_TARGETS,
} from '../inbox-sql.ts';
import { IDS_BETWEEN, SEQ_OF_ID } from '../sqlite-inbox/delivery-zones.ts';
import { ATTEMPTS } from './attempts.ts';
import { type Dialect, queries, type Row, type Sql, type Step } from './sql.ts';

/** Conditions on jobs that determine the status of a delivery; the first match counts. */
const STATUS_OF: readonly (readonly [DeliveryStatus, string])[] = [
  ['processing', `status = 'open' AND owner IS NOT NULL`],
  ['pending', `status = 'open'`],
  ['dead', `status = 'dead'`],
  ['done', `status = 'done'`],
  ['discarded', `status = 'discarded'`],
];
const CASES = STATUS_OF.map(
  ([status, condition]) => `WHEN count(*) FILTER (WHERE ${condition}) > 0 THEN '${status}'`,
);

/**
 * An expression for the status of the delivery in row `d`. It is one subquery, so it reads only that
 * delivery's jobs, whatever index the planner would choose for a single condition.
 */
const STATUS = `(SELECT CASE ${CASES.join(' ')} ELSE 'unhandled' END FROM jobs WHERE delivery = d.seq)`;

/** The status of a job for operators: an open job is pending, or processing while it is leased. */
const JOB_STATUS = `CASE WHEN status <> 'open' THEN status WHEN owner IS NULL THEN 'pending' ELSE 'processing' END`;

/** The planned time of a job before its first attempt; null otherwise. */
const PLANNED_AT = `CASE WHEN status = 'open' AND owner IS NULL AND attempts = 0 THEN run_at END`;

/** Longer errors are cut in lists, in characters. */
const MAX_LISTED_ERROR = 300;

/** The columns of a delivery `d` in lists. */
const SUMMARY = `
  d.seq, d.id, d.source, d.event, d.sender_event, d.received_at, octet_length(d.body), ${STATUS},
  (SELECT CAST(coalesce(sum(attempts), 0) AS int) FROM jobs WHERE delivery = d.seq),
  (SELECT min(${PLANNED_AT}) FROM jobs WHERE delivery = d.seq),
  (SELECT max(CASE WHEN status = 'dead' THEN substr(error, 1, ${MAX_LISTED_ERROR}) END) FROM jobs WHERE delivery = d.seq)`;

/** Maximum number of deliveries that a page scans: reads of SQLite block a thread. */
const WINDOW = 5_000;
/** The same for a search in bodies. */
const TEXT_WINDOW = 500;
/**
 * A page ends after the delivery whose event names bring their total size to this many bytes: senders choose
 * them.
 */
const MAX_EVENT_BYTES = 256 * 1024;
/** Maximum number of dead jobs, and of open ones, that are counted for one target. */
const MAX_FAILED = 10_000;
/** Maximum number of attempts that are shown of a delivery: an event may have many endpoints. */
const MAX_ATTEMPTS = 5_000;
/** Maximum number of failing targets that are listed. */
const MAX_TARGETS = 100;
/** Sorts after every character of an id. */
const LAST = '\u{10ffff}';

/** The end of a window of `$2` deliveries from `$1` on, and how many it has. */
const windowOf = (edge: 'min' | 'max', beyond: '<' | '>', order: 'ASC' | 'DESC') => ({
  long: `
    SELECT ${edge}(seq), count(*)
    FROM (SELECT seq FROM deliveries WHERE seq ${beyond} $1 ORDER BY seq ${order} LIMIT $2 + 0) AS looked`,
});

/** The condition that a delivery `d` matches a filter, whose parameters are `$first` and the next six; null matches all. */
const matches = ({ either }: Dialect, first: number) => {
  const [event, source, since, until, status, text, target] = Array.from(
    { length: 7 },
    (_, i) => `$${first + i}`,
  );
  return `
        (CAST(${event} AS text) IS NULL OR event = ${event} OR sender_event = ${event})
        AND (CAST(${source} AS text) IS NULL OR source = ${source})
        AND (CAST(${target} AS text) IS NULL
          OR (SELECT count(*) FILTER (WHERE target = ${target}) FROM jobs WHERE delivery = d.seq) > 0)
        AND (CAST(${since} AS bigint) IS NULL OR received_at >= ${since})
        AND (CAST(${until} AS bigint) IS NULL OR received_at < ${until})
        AND (CAST(${status} AS text) IS NULL OR ${STATUS} = ${status})
        AND (CAST(${text} AS ${either('blob', 'bytea')}) IS NULL
          OR ${either(`instr(d.body, ${text})`, `position(${text} IN d.body)`)} > 0)`;
};

/** Up to `$3` deliveries from `$1` to `$2` that match a filter. */
const matching = (dialect: Dialect, beyond: '<' | '>', within: '<=' | '>=', order: 'ASC' | 'DESC') => ({
  long: `
    WITH found AS (
      SELECT seq, coalesce(octet_length(event), 0) + coalesce(octet_length(sender_event), 0) AS bytes
      FROM deliveries AS d
      WHERE seq ${beyond} $1 AND seq ${within} $2 AND ${matches(dialect, 4)}
      ORDER BY seq ${order} LIMIT $3 + 0),
    page AS (
      SELECT seq, count(*) OVER () AS matches,
        sum(bytes) OVER (ORDER BY seq ${order} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
      FROM found)
    SELECT ${SUMMARY}, page.matches FROM page, deliveries AS d
    WHERE d.seq = page.seq AND coalesce(page.before, 0) < ${MAX_EVENT_BYTES} ORDER BY d.seq ${order}`,
});

/** The deliveries of dead jobs beside those of endpoints, of each range up to a limit. */
const DEAD = BESIDE_ENDPOINTS.map(
  (range, i) => `
    SELECT delivery FROM (
      SELECT delivery FROM jobs WHERE status = 'dead' AND ${range} ORDER BY target, finished_at LIMIT ${MAX_FAILED}) AS part${i}`,
);

/** Whether no job of the delivery in row `jobs` is open; a count, so that it reads that delivery's jobs only. */
const NONE_OPEN = `
  (SELECT count(*) FILTER (WHERE status = 'open') FROM jobs AS other WHERE other.delivery = jobs.delivery) = 0`;

export const DELIVERY_QUERIES = queries('deliveries', (sql) => {
  const exact = sql.either(`d.seq = (${SEQ_OF_ID})`, 'd.id = $1');
  return {
    windowBack: windowOf('min', '<', 'DESC'),
    windowForward: windowOf('max', '>', 'ASC'),
    matchesBack: matching(sql, '<', '>=', 'DESC'),
    matchesForward: matching(sql, '>', '<=', 'ASC'),
    counts: {
      long: `
        SELECT status, count(*)
        FROM (SELECT ${STATUS} AS status FROM deliveries AS d WHERE seq < $1 AND seq >= $2 AND ${matches(sql, 3)}) AS each
        GROUP BY status`,
    },
    // Deliveries of the status dead: two index scans of the dead jobs.
    dead: {
      long: `
        SELECT count(*) FROM (
          SELECT DISTINCT delivery
          FROM (${DEAD.join(' UNION ALL ')}) AS ended) AS died
        WHERE (SELECT count(*) FILTER (WHERE status = 'open') FROM jobs WHERE delivery = died.delivery) = 0`,
    },
    // Per target with dead jobs or with open ones that have failed: one index lookup per target (a loose index scan)
    // plus the jobs that are counted.
    failing: {
      long: `
        ${WAITING_TARGETS},
        dying (target) AS (
          SELECT min(target) FROM jobs WHERE status = 'dead'
          UNION ALL
          SELECT (SELECT min(jobs.target) FROM jobs WHERE status = 'dead' AND jobs.target > ${beyond('dying.target')})
          FROM dying WHERE dying.target IS NOT NULL),
        named AS (
          SELECT target FROM (SELECT target FROM waiting UNION SELECT target FROM dying) AS either
          WHERE NOT (${isEndpoint('target')})),
        counted AS (
          SELECT target,
            (SELECT count(*) FROM (
              SELECT 1 FROM jobs WHERE status = 'dead' AND jobs.target = named.target LIMIT ${MAX_FAILED}) AS ended) AS dead,
            (SELECT count(*) FILTER (WHERE error IS NOT NULL) FROM (
              SELECT error FROM jobs WHERE status = 'open' AND NOT blocked AND jobs.target = named.target
              LIMIT ${MAX_FAILED}) AS open) AS retrying
          FROM named WHERE target IS NOT NULL)
        SELECT target, dead, retrying,
          (SELECT max(finished_at) FROM jobs WHERE status = 'dead' AND jobs.target = counted.target),
          substr(coalesce(
            (SELECT error FROM jobs WHERE status = 'dead' AND jobs.target = counted.target
              ORDER BY finished_at DESC LIMIT 1),
            (SELECT max(error) FROM (
              SELECT error FROM jobs WHERE status = 'open' AND NOT blocked AND jobs.target = counted.target
              LIMIT ${MAX_FAILED}) AS open)), 1, ${MAX_LISTED_ERROR})
        FROM counted WHERE dead > 0 OR retrying > 0 ORDER BY 4 DESC LIMIT ${MAX_TARGETS}`,
    },
    find: {
      long: `SELECT ${SUMMARY}, d.data_pointer, d.content_type, d.headers, d.trace, d.body FROM deliveries AS d WHERE ${exact}`,
    },
    jobs: {
      long: `
        SELECT seq, target, ${JOB_STATUS}, attempts, due_at, error, finished_at, crashes, ${PLANNED_AT}
        FROM jobs WHERE delivery = $1 ORDER BY seq`,
    },
    attempts: { long: ATTEMPTS.of('delivery = $1', MAX_ATTEMPTS) },
    exact: { long: `SELECT d.id FROM deliveries AS d WHERE ${exact}` },
    // Up to `$3` ids from `$1`, inclusive, to `$2`, exclusive.
    range: {
      long: sql.either(
        IDS_BETWEEN,
        'SELECT id FROM deliveries WHERE id >= $1 AND id < $2 ORDER BY id LIMIT $3',
      ),
    },
    // The ids of the deliveries with the dedup key: one index lookup per source, of which there are few.
    bySender: {
      long: `
        WITH RECURSIVE senders (source) AS (
          SELECT min(source) FROM deliveries WHERE dedup_key IS NOT NULL
          UNION ALL
          SELECT (SELECT min(source) FROM deliveries WHERE dedup_key IS NOT NULL AND deliveries.source > senders.source)
          FROM senders WHERE senders.source IS NOT NULL)
        SELECT d.id FROM senders, deliveries AS d WHERE d.source = senders.source AND d.dedup_key = $1`,
    },
    seqOf: sql.either(SEQ_OF_ID, 'SELECT seq FROM deliveries WHERE id = $1'),
    // Serialises concurrent replays, so that the second sees the result of the first.
    lock: `SELECT seq FROM deliveries WHERE seq = $1 ${sql.lock}`,
    // A statement that waits for a job decides by other rows as they were before. The later statements see what a
    // repeat of the delivery has reopened until now, and nobody reopens more.
    lockJobs: `SELECT seq FROM jobs WHERE delivery = $1 ORDER BY seq ${sql.lock}`,
    // Gives the job of a former handler to the current one.
    replaceTarget: `
      UPDATE jobs SET target = $3, order_key = $4 WHERE delivery = $1 AND target = $2 AND ${NONE_OPEN}`,
    // Before a replay.
    keepSuccesses: ATTEMPTS.keep(`delivery = $1 AND ${sql.isIn('target', '$2', 'text')} AND ${NONE_OPEN}`),
    replay: `
      UPDATE jobs SET status = 'open', attempts = 0, crashes = 0, due_at = ${sql.notAhead('$3')} - ${HEAD_START},
        run_at = NULL, error = NULL, finished_at = NULL, ${ATTEMPTS.noSuccess}
      WHERE delivery = $1 AND ${sql.isIn('target', '$2', 'text')} AND ${NONE_OPEN} RETURNING seq`,
    replayUnhandled: `
      INSERT INTO jobs (delivery, due_at, target, order_key${sql.either(', blocked', '')})
      SELECT d.seq, ${sql.notAhead('$2')}, job.target, job.order_key${sql.either(`, ${isBlocked('job.target', 'job.order_key')}`, '')}
      FROM deliveries AS d, ${sql.rows('$3', { target: 'text', order_key: 'text' })} AS job
      WHERE d.seq = $1 AND NOT EXISTS (SELECT 1 FROM jobs WHERE delivery = d.seq) ORDER BY nth RETURNING seq`,
    discard: `
      UPDATE jobs SET status = 'discarded', finished_at = $2, owner = NULL
      WHERE delivery = $1 AND status IN ('open', 'dead') RETURNING seq`,
  };
});

/** What differs between the engines. */
interface DeliveryLogOptions {
  readonly maxChanges: number;
  /** Waits until every `seq` below one already seen is visible or was rolled back. */
  awaitEarlier?(): Promise<void>;
  /** Called after a replay, when jobs are open again. */
  onReplayed?(): void;
}

/** The delivery log of a database. */
export function deliveryLog(
  sql: Sql,
  { maxChanges, awaitEarlier, onReplayed }: DeliveryLogOptions,
): DeliveryLog {
  const { find, jobs, attempts, exact, range, bySender, seqOf, lock, discard } = DELIVERY_QUERIES;
  const { lockJobs, replaceTarget, keepSuccesses, replay, replayUnhandled } = DELIVERY_QUERIES;
  const seqOfId = (id: string) => whenReady(sql.read(seqOf, id), ([row]) => row && Number(row[0]));

  return {
    maxChanges,

    list(
      filter: DeliveryFilter,
      limit: number,
      cursor: DeliveryCursor = { before: Number.MAX_SAFE_INTEGER },
    ): MaybePromise<DeliveryPage> {
      const forward = 'after' in cursor;
      const { windowBack, windowForward, matchesBack, matchesForward } = DELIVERY_QUERIES;
      const [window, found] = forward ? [windowForward, matchesForward] : [windowBack, matchesBack];
      const from = forward ? cursor.after : cursor.before;
      const size = filter.text === undefined ? WINDOW : TEXT_WINDOW;
      return whenReady(sql.read(window, from, size), ([bounds]) => {
        const [edge, looked] = (bounds ?? []) as [(number | null)?, number?];
        if (edge === null || edge === undefined) return { items: [], next: undefined };
        // In order of arrival, a page must not skip deliveries with a lower `seq` that are not committed yet.
        return whenReady(forward ? awaitEarlier?.() : undefined, () => {
          // One more than the limit shows whether there is another page.
          const page = sql.read(found, from, edge, limit + 1, ...conditions(filter));
          return whenReady(page, (rows) => {
            const items = rows.slice(0, limit).map(summaryOf);
            const matched = Number(rows[0]?.[11] ?? 0);
            if (matched > items.length) return { items, next: items.at(-1)?.seq };
            return { items, next: looked === size ? edge : undefined };
          });
        });
      });
    },

    count(filter: DeliveryFilter, before = Number.MAX_SAFE_INTEGER): MaybePromise<DeliveryCounts> {
      const size = filter.text === undefined ? WINDOW : TEXT_WINDOW;
      return whenReady(sql.read(DELIVERY_QUERIES.windowBack, before, size), ([bounds]) => {
        const [edge, looked] = (bounds ?? []) as [(number | null)?, number?];
        if (edge === null || edge === undefined) return { counts: {}, next: undefined };
        return whenReady(sql.read(DELIVERY_QUERIES.counts, before, edge, ...conditions(filter)), (rows) => ({
          counts: Object.fromEntries(rows.map(([status, count]) => [String(status), Number(count)])),
          next: looked === size ? edge : undefined,
        }));
      });
    },

    failing: (): MaybePromise<FailingTargets> =>
      whenReady(sql.read(DELIVERY_QUERIES.dead), ([dead]) =>
        whenReady(sql.read(DELIVERY_QUERIES.failing), (rows) => ({
          dead: Number(dead?.[0] ?? 0),
          targets: rows.map(([target, died, retrying, lastDeadAt, error]) => ({
            target: String(target),
            dead: Number(died),
            retrying: Number(retrying),
            lastDeadAt: lastDeadAt === null ? null : Number(lastDeadAt),
            error: error === null ? null : String(error),
          })),
        })),
      ),

    find: (id: string): MaybePromise<DeliveryDetail | undefined> =>
      whenReady(sql.read(find, id), ([row]) => {
        if (row === undefined) return undefined;
        const summary = summaryOf(row);
        type Columns = [string, string | null, string | null, string | null, Uint8Array];
        const [dataPointer, contentType, headers, trace, body] = row.slice(11) as Columns;
        return whenReady(sql.read(jobs, summary.seq), (jobRows) =>
          whenReady(sql.read(attempts, summary.seq), (rows) => {
            const entries = entriesByJob(rows);
            const details = jobRows.map((job) => jobOf(job, summary.receivedAt, entries));
            return { ...summary, dataPointer, contentType, headers, trace, body, jobs: details };
          }),
        );
      }),

    resolve(name: string, limit: number): MaybePromise<readonly string[]> {
      if (name === '') return [];
      return whenReady(sql.read(exact, name), (found) => {
        if (found.length > 0) return [name];
        return whenReady(sql.read(bySender, storedKey(name)), (sent) =>
          whenReady(sql.read(range, name, name + LAST, limit), (begun) => [
            ...new Set([...sent, ...begun].map(([id]) => String(id))),
          ]),
        );
      });
    },

    async replay(id: string, replayed: readonly ReplayedJob[], now: number): Promise<boolean> {
      const seq = await seqOfId(id);
      if (seq === undefined) return false;
      const replacements = replayed.flatMap(({ target, orderKey, replaces }): readonly Step[] =>
        replaces === undefined ? [] : [[replaceTarget, seq, replaces, target, storedKey(orderKey)]],
      );
      const targets = replayed.map(({ target }) => target);
      const rows = await sql.write(
        [lock, seq],
        [lockJobs, seq],
        ...replacements,
        [keepSuccesses, seq, targets],
        [replay, seq, targets, now],
        [
          replayUnhandled,
          seq,
          now,
          { rows: replayed.map(({ target, orderKey }) => [target, storedKey(orderKey)]) },
        ],
      );
      const [reopened = [], added = []] = rows.slice(-2);
      if (reopened.length + added.length === 0) return false;
      onReplayed?.();
      return true;
    },

    async discard(id: string, now: number): Promise<boolean> {
      const seq = await seqOfId(id);
      if (seq === undefined) return false;
      const [discarded = []] = await sql.write([discard, seq, now]);
      return discarded.length > 0;
    },
  };
}

/** The values of a filter. A text is sought as bytes; NUL is left out, as names cannot have it. */
function conditions({ event, source, since, until, status, text, target }: DeliveryFilter) {
  const bytes = text === undefined ? null : Buffer.from(text.replaceAll('\0', ''));
  return [event ?? null, source ?? null, since ?? null, until ?? null, status ?? null, bytes, target ?? null];
}

function summaryOf(row: Row): DeliverySummary {
  type Columns = [
    number,
    string,
    string,
    string | null,
    string | null,
    number,
    number,
    DeliverySummary['status'],
    number,
    number | null,
    string | null,
  ];
  const columns = row as Columns & Row;
  const [seq, id, source, event, senderEvent, receivedAt, size, status, attempts, plannedAt, error] = columns;
  return { seq, id, source, event, senderEvent, status, receivedAt, attempts, size, plannedAt, error };
}

function jobOf(
  row: Row,
  receivedAt: number,
  entries: ReadonlyMap<number, readonly AttemptEntry[]>,
): JobDetail {
  type Columns = [
    number,
    string,
    JobDetail['status'],
    number,
    number,
    string | null,
    number | null,
    number,
    number | null,
  ];
  const [seq, target, status, attempts, due, error, finishedAt, crashes, plannedAt] = row as Columns & Row;
  const history = entries.get(seq) ?? [];
  // A priority moves `due_at` before the receipt.
  const dueAt = Math.max(due, receivedAt);
  return { target, status, attempts, dueAt, plannedAt, finishedAt, crashes, error, history };
}

/** Groups entries by job number. */
function entriesByJob(rows: readonly Row[]): ReadonlyMap<number, readonly AttemptEntry[]> {
  const byJob = Map.groupBy(rows, ([job]) => Number(job));
  return new Map([...byJob].map(([job, all]) => [job, all.map((row) => ATTEMPTS.read(row.slice(1)))]));
}
