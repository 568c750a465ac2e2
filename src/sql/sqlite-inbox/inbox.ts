import type { DatabaseSync } from 'node:sqlite';
import { type ClaimedJob, type StoredDelivery, TenantChangedError } from '../../inbox/delivery.ts';
import { type Appended, type AppendedAndClaimed, appendedOnly, type Inbox } from '../../inbox/inbox.ts';
import { counted, type DatabaseObserver } from '../batch-queue.ts';
import { openJobs } from '../inbox-sql.ts';
import { readRow, readRows } from '../sqlite/connection.ts';
import { sqliteSql } from '../sqlite/sql.ts';
import type { Row, Step, StepRows } from '../sqlite-writer/batch.ts';
import type { Writer } from '../sqlite-writer/writer.ts';
import { inboxUpkeep } from '../stores/inbox-upkeep.ts';
import { CHANGE_RELAY_QUERIES, checkpoints, enqueuedDeliveries, relayStore } from '../stores/producers.ts';
import {
  type AppendSteps,
  appendStepsBy,
  conditionalAppends,
  isTenantChanged,
  readAppended,
  readHandedOver,
} from './append.ts';
import { SIZE, ZONE } from './delivery-zones.ts';
import { pruneValues } from './pruner.ts';
import { settleSteps } from './settle.ts';

const ADD_ZONES: readonly Step[] = [
  { statement: 'countTail', values: [] },
  { statement: 'addZones', values: [] },
];

const NONE: readonly ClaimedJob[] = [];
const alwaysStored = (): Appended => 'stored';

/** Sorts claimed rows in the order in which their attempts start. */
const byPriority = (a: Row, b: Row) => Number(b[5]) - Number(a[5]) || Number(a[0]) - Number(b[0]);

const isSettled = ([settled = []]: StepRows): boolean => settled.length > 0;

/** The inbox in SQLite. Reads run on the caller's thread, writes go through the writer's queues. */
export function sqliteInbox(
  reads: DatabaseSync,
  { queue: writes, background }: Pick<Writer, 'queue' | 'background'>,
  observer: DatabaseObserver,
): Inbox {
  const clock = steadyClock();
  let appends = 0;
  const stepsOf = appendStepsBy(clock);
  const appendSteps: AppendSteps = (...given) => {
    // The first call covers deliveries of earlier processes. After a failure, the next call does the work.
    if (appends++ % ZONE === 0) writes.submit(ADD_ZONES).catch(() => {});
    return stepsOf(...given);
  };
  const sql = sqliteSql({ reads, writes });
  const conditional = conditionalAppends(writes, stepsOf);
  const deliveriesTally = observer.reads('inbox.deliveries');
  const deliveries = reads.prepare(`
    SELECT seq, id, source, event, sender_event AS senderEvent, data_pointer AS dataPointer,
      content_type AS contentType, headers, trace, body, received_at AS receivedAt
    FROM deliveries WHERE seq IN (SELECT value FROM json_each(?))`);
  const size = reads.prepare(SIZE);

  /** Combines claimed rows with their deliveries. */
  function claimedJobs(target: string, claimed: readonly Row[]): readonly ClaimedJob[] {
    if (claimed.length === 0) return [];
    const found = readDeliveries(claimed);
    return claimed
      .toSorted(byPriority)
      .map(([job, attempt, crashes, delivery, ordered]) => ({
        job: Number(job),
        target,
        attempt: Number(attempt),
        crashes: Number(crashes),
        ordered: ordered === 1,
        delivery: found.get(Number(delivery)),
      }))
      .filter((job): job is ClaimedJob => job.delivery !== undefined);
  }

  /** Reads the deliveries of claimed jobs. */
  function readDeliveries(claimed: readonly Row[]): ReadonlyMap<number, StoredDelivery> {
    const seqs = JSON.stringify([...new Set(claimed.map(([, , , delivery]) => Number(delivery)))]);
    const rows = counted(deliveriesTally, () =>
      readRows<StoredDelivery & { readonly seq: number }>(deliveries, seqs),
    );
    return new Map(
      rows.map((row) => {
        const { seq, id, source, event, senderEvent, dataPointer, contentType, headers, trace } = row;
        const { body, receivedAt } = row;
        return [
          seq,
          { id, source, event, senderEvent, dataPointer, contentType, headers, trace, body, receivedAt },
        ];
      }),
    );
  }

  const appendAll: Inbox['appendAll'] = async (deliveries, handOvers = []) => {
    const results = await writes.submitAll(
      deliveries.map((delivery, i) => appendSteps(delivery, handOvers[i])),
      (rows, i): AppendedAndClaimed => {
        const [delivery, handOver] = [deliveries[i], handOvers[i]];
        const appended = delivery?.dedupKey === null ? 'stored' : readAppended(rows);
        const isHanded = delivery !== undefined && handOver !== undefined && appended === 'stored';
        return { appended, jobs: isHanded ? readHandedOver(delivery, handOver, rows) : NONE };
      },
    );
    return results.map((result) => (isTenantChanged(result) ? new TenantChangedError() : result));
  };

  return {
    append(delivery) {
      if (delivery.tenant !== undefined) return appendAll([delivery]).then(appendedOnly);
      return writes.submit(appendSteps(delivery), delivery.dedupKey === null ? alwaysStored : readAppended);
    },

    appendAll,

    async claim(target, limit, owner, lease, options = {}) {
      const { held = [], quarantined = false, maxBytes = Number.MAX_SAFE_INTEGER, now = clock() } = options;
      const values = [owner, now + lease, target, now, limit, JSON.stringify(held), maxBytes];
      return claimedJobs(
        target,
        await writes.write(quarantined ? 'claimQuarantined' : 'claimJobs', ...values),
      );
    },

    settle(job, owner, outcome, now = clock()) {
      return writes.submit(settleSteps(job, owner, outcome, now), isSettled);
    },

    settleDone(successes, owner) {
      const now = clock();
      const steps = successes.flatMap(({ job, trace }) =>
        settleSteps(job, owner, { kind: 'done', ...(trace && { trace }) }, now),
      );
      return writes.submit(steps, (rows) => rows.map((row) => row.length > 0));
    },

    async finish(job, owner, outcome, { lease, maxBytes }, now = clock()) {
      const next: Step = { statement: 'claimNext', values: [owner, now + lease, job.job, now, maxBytes] };
      const steps = settleSteps(job, owner, outcome, now, next);
      const rows = await writes.submit(steps);
      const claimed = claimedJobs(job.target, rows[steps.indexOf(next)] ?? []);
      return { recorded: isSettled(rows), next: claimed[0] };
    },

    ...inboxUpkeep({
      sql,
      background: sqliteSql({ reads, writes: background }),
      observer,
      clock,
      wallClock: Date.now,
    }),

    async prune(rule) {
      const [row = []] = await background.write('prune', ...pruneValues(rule));
      const [removed = 0, looked = 0, isLast = 1] = row.map(Number);
      return { removed, looked, isLast: isLast === 1 };
    },

    checkpoints: checkpoints(sql, conditional, Date.now),
    enqueued: enqueuedDeliveries(sql, conditional),
    relay: relayStore(sql, conditional),
    changeRelay: relayStore(sql, conditional, CHANGE_RELAY_QUERIES),
    clock,

    size: () => readRow<{ size: number }>(size)?.size ?? 0,
  };
}

/** SQLITE_CORRUPT (sqlite.org/rescode.html). */
const CORRUPT = 11;

/** The latest times in the database: the last heartbeat and the newest delivery. */
const LAST_SEEN = `
  SELECT max(
    coalesce((SELECT max(seen_at) FROM targets), 0),
    coalesce((SELECT received_at FROM deliveries ORDER BY seq DESC LIMIT 1), 0)) AS lastSeen`;

/** Whether an open job has a planned time, by the system's clock, and no attempt yet. */
const WAITS_FOR_TIME = '(owner IS NULL AND attempts = 0 AND run_at IS NOT NULL)';

const OPEN = `seq IN (${openJobs('seq')})`;

/**
 * Corrects the times of open jobs when a service starts, which has the file to itself; `now` is in
 * milliseconds since the epoch. Leases of earlier processes end. If the clock was set back by an hour,
 * retries would be an hour late, so their times move back by the same amount. Planned times stay.
 */
export function resetTimes(db: DatabaseSync, now: number): void {
  const ahead = lastSeen(db) - now;
  db.exec('BEGIN IMMEDIATE');
  try {
    db.prepare(
      `UPDATE jobs SET due_at = CASE WHEN ${WAITS_FOR_TIME} THEN run_at ELSE ?1 END
       WHERE ${OPEN} AND due_at > ?1 AND (owner IS NOT NULL OR attempts = 0)`,
    ).run(now);
    if (ahead > 0) {
      db.prepare(
        `UPDATE jobs SET due_at = max(?1, due_at - ?2) WHERE ${OPEN} AND due_at > ?1 AND NOT ${WAITS_FOR_TIME}`,
      ).run(now, ahead);
      db.prepare('UPDATE targets SET seen_at = ?1 WHERE seen_at > ?1').run(now);
    }
    db.exec('COMMIT');
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

/**
 * Returns 0 if a page of the deliveries is damaged: the other doors still work, and the writer's health check
 * reports it.
 */
function lastSeen(db: DatabaseSync): number {
  try {
    return Number(db.prepare(LAST_SEEN).get()?.lastSeen ?? 0);
  } catch (error) {
    if ((error as { readonly errcode?: unknown }).errcode === CORRUPT) return 0;
    throw error;
  }
}

/**
 * While the clock is ahead of the wall clock by less than this, in milliseconds, it stands still until they
 * agree.
 */
const SLEW = 1_000;

/**
 * A clock that never goes back, in milliseconds since the epoch. It follows the wall clock forwards; if that
 * is set back, it continues unaffected, so that leases and due times do not move away.
 */
export function steadyClock(wall = () => Date.now(), steady = () => performance.now()): () => number {
  let last = wall();
  let readAt = steady();
  return () => {
    const [wallNow, steadyNow] = [wall(), steady()];
    const expected = last + (steadyNow - readAt);
    readAt = steadyNow;
    last = expected - wallNow > SLEW ? expected : Math.max(last, wallNow);
    return Math.floor(last);
  };
}
