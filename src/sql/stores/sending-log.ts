import { type MaybePromise, whenReady } from '../../core/scheduler.ts';
import type { RecentEvents, SendingLog, SentEvent, StoredEvent, TenantEvent } from '../../sending/store.ts';
import { IS_TENANT, isBlocked, isEndpoint, storedKey } from '../inbox-sql.ts';
import { ATTEMPTS } from './attempts.ts';
import { DELIVERY_QUERIES } from './delivery-log.ts';
import { type Query, queries, type Row, type Sql, type Value } from './sql.ts';

/** Rows that a page examines at most. */
const WINDOW = 2_000;
/** Events of an endpoint that its numbers count. */
const COUNTED = 2_000;
/** The latest events of an endpoint that a list of endpoints looks at. */
const RECENT = 50;
/** The latest events whose attempts are listed, and how many of these. */
const LAST = { events: 100, attempts: 20 } as const;
/** Attempts of an event at an endpoint that are listed at most: so many are kept, and those before resends. */
const MAX_ATTEMPTS = 2_000;
/** Events of a page of a replay. */
const REPLAYED = 100;
const HOUR = 3_600_000;

const STATUS = `
  CASE WHEN jobs.status <> 'open' THEN jobs.status WHEN jobs.owner IS NULL THEN 'pending' ELSE 'processing' END`;
const SENT = `
  jobs.seq, d.id, d.event, ${STATUS}, jobs.attempts, d.received_at,
  CASE WHEN jobs.status = 'open' AND jobs.owner IS NULL THEN jobs.due_at END, jobs.finished_at, jobs.error`;
const EVENT = 'd.seq, d.id, d.event, d.received_at';
const OF_ENDPOINT = `jobs.target = $1 AND ${isEndpoint('jobs.target')}`;
/** The latest jobs of an endpoint. */
const LAST_JOBS = `SELECT seq FROM jobs WHERE ${OF_ENDPOINT} ORDER BY seq DESC LIMIT ${LAST.events}`;
const OF_TENANT = `source = $1 AND ${IS_TENANT}`;

/** The end of a window of `$3` rows before `$2`, and how many it has. */
const windowOf = (table: string, condition: string) => ({
  long: `
    SELECT min(seq), count(*) FROM (
      SELECT seq FROM ${table} WHERE ${condition} AND seq < $2 ORDER BY seq DESC LIMIT $3 + 0) AS looked`,
});

export const SENDING_LOG_QUERIES = queries('sent', (sql) => ({
  eventWindow: windowOf('deliveries', OF_TENANT),
  events: {
    long: `
      SELECT ${EVENT} FROM deliveries AS d
      WHERE ${OF_TENANT} AND seq < $2 AND seq >= $3 AND (CAST($4 AS text) IS NULL OR event = $4)
      ORDER BY seq DESC LIMIT $5 + 0`,
  },
  event: { long: `SELECT ${EVENT}, d.body FROM deliveries AS d WHERE d.seq = $2 AND d.source = $1` },
  sentTo: {
    long: `
      SELECT ${SENT}, jobs.target FROM jobs JOIN deliveries AS d ON d.seq = jobs.delivery
      WHERE jobs.delivery = $2 AND d.source = $1 ORDER BY jobs.seq LIMIT 1000`,
  },
  sentWindow: windowOf('jobs', OF_ENDPOINT),
  sent: {
    long: `
      SELECT ${SENT} FROM jobs JOIN deliveries AS d ON d.seq = jobs.delivery
      WHERE ${OF_ENDPOINT} AND jobs.seq < $2 AND jobs.seq >= $3
        AND (CAST($4 AS text) IS NULL OR ${STATUS} = $4)
      ORDER BY jobs.seq DESC LIMIT $5 + 0`,
  },
  attempts: { long: ATTEMPTS.of('delivery = $2 AND target = $1', MAX_ATTEMPTS) },
  stats: {
    long: `
      SELECT status, hour, count(*) FROM (
        SELECT ${STATUS} AS status, jobs.finished_at / ${HOUR} AS hour FROM jobs
        WHERE ${OF_ENDPOINT} ORDER BY jobs.seq DESC LIMIT ${COUNTED}) AS last
      GROUP BY status, hour`,
  },
  recent: {
    long: `
      SELECT jobs.status, jobs.finished_at, jobs.error,
        (SELECT max(started_at) FROM attempts WHERE job = jobs.seq AND outcome IN ('retry', 'dead'))
      FROM jobs WHERE ${OF_ENDPOINT} ORDER BY jobs.seq DESC LIMIT ${RECENT}`,
  },
  lastAttempts: {
    long: `
      SELECT ${ATTEMPTS.columns}, d.id, d.event FROM (
        SELECT * FROM (
          SELECT ${ATTEMPTS.columns}, (SELECT delivery FROM jobs WHERE jobs.seq = attempts.job) AS delivery
          FROM attempts WHERE ${sql.among('job', LAST_JOBS)}
          UNION ALL
          SELECT ${ATTEMPTS.success}, delivery FROM jobs WHERE ${sql.among('seq', LAST_JOBS)} AND ${ATTEMPTS.isSuccess}) AS every
        ORDER BY started_at DESC, attempt DESC LIMIT ${LAST.attempts}) AS a
      JOIN deliveries AS d ON d.seq = a.delivery ORDER BY started_at DESC, attempt DESC`,
  },
  // Serialises with other resends of the event.
  lockEvent: `SELECT seq FROM deliveries WHERE seq = $1 ${sql.lock}`,
  keepSuccess: ATTEMPTS.keep(`delivery = $1 AND target = $2 AND status <> 'open'`),
  reopen: `
    UPDATE jobs SET status = 'open', attempts = 0, crashes = 0, due_at = ${sql.timeOr('$3')}, run_at = NULL,
      error = NULL, finished_at = NULL, ${ATTEMPTS.noSuccess}
    WHERE delivery = $1 AND target = $2 AND status <> 'open' RETURNING seq`,
  // The given events that the endpoint has no job for; looks each of them up. Retention waits for the lock.
  add: `
    INSERT INTO jobs (delivery, due_at, target, order_key${sql.either(', blocked', '')})
    SELECT given.seq, ${sql.timeOr('$2')}, CAST($1 AS text), given.order_key${sql.either(`, ${isBlocked('$1', 'given.order_key')}`, '')}
    FROM ${sql.rows('$3', { seq: 'bigint', order_key: 'text' })} AS given
    WHERE (SELECT seq FROM deliveries WHERE deliveries.seq = given.seq ${sql.either('', 'FOR KEY SHARE')}) IS NOT NULL
      AND (SELECT count(*) FROM jobs WHERE delivery = given.seq AND target = $1) = 0
    ORDER BY nth RETURNING seq`,
  replayPage: {
    long: `
      SELECT ${EVENT}, d.body FROM deliveries AS d
      WHERE ${OF_TENANT} AND seq > $2 AND received_at >= $3 AND received_at < $4 ORDER BY seq LIMIT ${REPLAYED}`,
  },
}));

/** The events of tenants and their attempts. `onAdded` is called once jobs are open. */
export function sendingLog(sql: Sql, now: () => number | null, onAdded = () => {}): SendingLog {
  const q = SENDING_LOG_QUERIES;
  const seqOf = (id: string) =>
    whenReady(sql.read(DELIVERY_QUERIES.seqOf, id), ([row]) => row && Number(row[0]));
  const sourceOf = (tenant: string) => `tenant:${tenant}`;

  function page<T extends { readonly seq: number }>(
    [window, found]: readonly [Query, Query],
    of: string,
    {
      before = Number.MAX_SAFE_INTEGER,
      limit,
    }: { readonly before?: number | undefined; readonly limit: number },
    condition: Value,
    read: (row: Row) => T,
  ): MaybePromise<{ readonly items: readonly T[]; readonly next: number | undefined }> {
    return whenReady(sql.read(window, of, before, WINDOW), ([bounds = []]) => {
      const [edge, looked] = bounds;
      if (edge === null || edge === undefined) return { items: [], next: undefined };
      return whenReady(sql.read(found, of, before, Number(edge), condition, limit + 1), (rows) => {
        const items = rows.slice(0, limit).map(read);
        if (rows.length > limit) return { items, next: items.at(-1)?.seq };
        return { items, next: Number(looked) === WINDOW ? Number(edge) : undefined };
      });
    });
  }

  return {
    events: (tenant, { type = null, ...back }) =>
      page([q.eventWindow, q.events], sourceOf(tenant), back, type, eventOf),
    event: (tenant, id) =>
      whenReady(seqOf(id), (seq) => {
        if (seq === undefined) return undefined;
        return whenReady(sql.read(q.event, sourceOf(tenant), seq), ([row]) => row && storedEventOf(row));
      }),
    sentTo: (tenant, id) =>
      whenReady(seqOf(id), (seq) => {
        if (seq === undefined) return [];
        return whenReady(sql.read(q.sentTo, sourceOf(tenant), seq), (rows) =>
          rows.map((row) => ({ ...sentOf(row), target: String(row[9]) })),
        );
      }),
    sent: (target, { status = null, ...back }) => page([q.sentWindow, q.sent], target, back, status, sentOf),
    attempts: (target, id) =>
      whenReady(seqOf(id), (seq) => {
        if (seq === undefined) return [];
        return whenReady(sql.read(q.attempts, target, seq), (rows) =>
          rows.map((row) => ATTEMPTS.read(row.slice(1))),
        );
      }),
    stats: (target) =>
      whenReady(sql.read(q.stats, target), (rows) => {
        const byStatus: Record<string, number> = {};
        const hours = new Map<number, { at: number; done: number; dead: number }>();
        let counted = 0;
        for (const [status, hour, count] of rows) {
          const [name, number] = [String(status), Number(count)];
          counted += number;
          byStatus[name] = (byStatus[name] ?? 0) + number;
          if (hour === null || (name !== 'done' && name !== 'dead')) continue;
          const at = Number(hour) * HOUR;
          const each = hours.get(at) ?? { at, done: 0, dead: 0 };
          each[name] += number;
          hours.set(at, each);
        }
        return { counted, byStatus, hours: [...hours.values()].sort((a, b) => a.at - b.at) };
      }),
    recent: (target) => whenReady(sql.read(q.recent, target), recentOf),
    lastAttempts: (target) =>
      whenReady(sql.read(q.lastAttempts, target), (rows) =>
        rows.map((row) => ({ ...ATTEMPTS.read(row), event: String(row[8]), type: String(row[9]) })),
      ),
    async resend(target, { seq }, orderKey) {
      const [, , reopened = [], added = []] = await sql.write(
        [q.lockEvent, seq],
        [q.keepSuccess, seq, target],
        [q.reopen, seq, target, now()],
        [q.add, target, now(), { rows: [[seq, storedKey(orderKey)]] }],
      );
      if (reopened.length + added.length === 0) return false;
      onAdded();
      return true;
    },
    replayPage: (tenant, { after, since, until }) =>
      whenReady(sql.read(q.replayPage, sourceOf(tenant), after, since, until), (rows) =>
        rows.map(storedEventOf),
      ),
    async addAll(target, events) {
      if (events.length === 0) return 0;
      const rows = events.map(({ seq, orderKey }) => [seq, storedKey(orderKey)]);
      const [added = []] = await sql.write([q.add, target, now(), { rows }]);
      if (added.length > 0) onAdded();
      return added.length;
    },
  };
}

const numberOrNull = (value: unknown) => (value === null ? null : Number(value));
const textOrNull = (value: unknown) => (value === null ? null : String(value));

function recentOf(rows: readonly Row[]): RecentEvents {
  const count = (wanted: string) => rows.filter(([status]) => status === wanted).length;
  const latest = (times: readonly unknown[]) =>
    times.reduce<number | null>((last, at) => (at === null ? last : Math.max(last ?? 0, Number(at))), null);
  const failed = rows.find(([, , error]) => error !== null);
  return {
    events: rows.length,
    done: count('done'),
    dead: count('dead'),
    open: count('open'),
    lastSuccessAt: latest(rows.map(([status, at]) => (status === 'done' ? at : null))),
    lastFailureAt: latest(rows.map(([, , , at]) => at)),
    error: textOrNull(failed?.[2] ?? null),
  };
}

function eventOf([seq, id, type, receivedAt]: Row): TenantEvent {
  return { seq: Number(seq), id: String(id), type: String(type), receivedAt: Number(receivedAt) };
}

function storedEventOf(row: Row): StoredEvent {
  return { ...eventOf(row), body: row[4] as Uint8Array };
}

function sentOf(row: Row): SentEvent {
  const [seq, event, type, status, attempts, receivedAt, nextAttemptAt, finishedAt, error] = row;
  return {
    seq: Number(seq),
    event: String(event),
    type: String(type),
    status: String(status) as SentEvent['status'],
    attempts: Number(attempts),
    receivedAt: Number(receivedAt),
    nextAttemptAt: numberOrNull(nextAttemptAt),
    finishedAt: numberOrNull(finishedAt),
    error: textOrNull(error),
  };
}
