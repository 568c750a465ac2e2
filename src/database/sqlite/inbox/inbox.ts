import type { DatabaseSync } from 'node:sqlite';
import { SUSPECT_DEATHS } from '../../../inbox/deaths.ts';
import type { ClaimedJob, StoredDelivery } from '../../../inbox/delivery.ts';
import type { Appended, Inbox, Outcome } from '../../../inbox/inbox.ts';
import { counted, type DatabaseObserver } from '../../observer.ts';
import { storedKey } from '../../stored-key.ts';
import { readRow, readRows } from '../read-row.ts';
import type { Row, Step, StepRows } from '../writer/batch.ts';
import type { WriteQueue } from '../writer/write-queue.ts';
import { ZONE } from './delivery-zones.ts';
import { jobsJson } from './jobs-json.ts';
import { steadyClock } from './steady-clock.ts';

const alwaysStored = (): Appended => 'stored';

/** Reads the rows of an append with a dedup key: the first step inserts the delivery, the last one revives dead jobs. */
function readAppended(rows: StepRows): Appended {
  if ((rows[0] ?? []).length > 0) return 'stored';
  return (rows.at(-1) ?? []).length > 0 ? 'revived' : 'duplicate';
}

/** The inbox in SQLite. Reads run on the caller's thread, writes go through the queue. */
export function sqliteInbox(reads: DatabaseSync, writes: WriteQueue, observer: DatabaseObserver): Inbox {
  const clock = steadyClock();
  let appends = 0;
  /** The number of prunes, of which an earlier process may have done one. */
  let prunes = 1;
  /**
   * The value of `prunes` at the last successful `appendAfterPrune`. While both are equal, SQLite continues the `seq`
   * by itself.
   */
  let seqKnownSince = 0;
  const dueTally = observer.reads('inbox.due');
  const deliveriesTally = observer.reads('inbox.deliveries');
  const backlogTally = observer.reads('inbox.backlog');
  const idOfKey = reads.prepare('SELECT id FROM deliveries WHERE source = ? AND dedup_key = ?');
  const dueTargets = reads.prepare(`
    SELECT value AS target FROM json_each(?)
    WHERE EXISTS (SELECT 1 FROM jobs WHERE target = value AND status = 'open' AND due_at <= ?)`);
  const suspectTargets = reads.prepare(`
    SELECT value AS target FROM json_each(?)
    WHERE EXISTS (SELECT 1 FROM jobs INDEXED BY jobs_suspect WHERE target = value AND status = 'open' AND due_at <= ?
      AND deaths > 0 AND deaths + (owner IS NOT NULL) >= ${SUSPECT_DEATHS})`);
  const deliveries = reads.prepare(`
    SELECT seq, id, source, event, data_pointer AS dataPointer, content_type AS contentType, body,
      received_at AS receivedAt
    FROM deliveries WHERE seq IN (SELECT value FROM json_each(?))`);
  // "+" makes SQLite use the index of open jobs; in the index of all jobs it would scan the done ones.
  const jobCounts = reads.prepare(`
    SELECT (SELECT count(*) FROM jobs WHERE status = 'open') AS open,
      (SELECT count(*) FROM jobs WHERE status = 'dead') AS dead,
      (SELECT received_at FROM deliveries
        WHERE seq = (SELECT min(+delivery) FROM jobs WHERE status = 'open')) AS oldestAt`);
  const prunable = reads.prepare(`
    SELECT seq FROM deliveries
    WHERE received_at < ?1
      AND NOT EXISTS (SELECT 1 FROM jobs WHERE delivery = deliveries.seq AND status = 'open')
      AND (NOT ?2 OR (EXISTS (SELECT 1 FROM jobs WHERE delivery = deliveries.seq)
        AND NOT EXISTS (SELECT 1 FROM jobs WHERE delivery = deliveries.seq AND status = 'dead')))
    ORDER BY seq LIMIT ?3`);
  const usedBytes = reads.prepare(`
    SELECT (page_count - freelist_count) * page_size AS size
    FROM pragma_page_count, pragma_freelist_count, pragma_page_size`);

  /** Reads the rows of `appendAfterPrune`; once it has stored a delivery, plain appends continue its `seq`. */
  function afterPrune(read: (rows: StepRows) => Appended): (rows: StepRows) => Appended {
    const since = prunes;
    return (rows) => {
      const appended = read(rows);
      if (appended === 'stored') seqKnownSince = since;
      return appended;
    };
  }

  function recordOutcome(
    fence: readonly [job: number, owner: string, attempt: number, deaths: number],
    outcome: Outcome,
    now: number,
  ): Promise<readonly Row[]> {
    switch (outcome.kind) {
      case 'done':
        return writes.write('finishJob', 'done', null, now, ...fence);
      case 'dead':
        return writes.write('finishJob', 'dead', outcome.error, now, ...fence);
      case 'retry':
        return writes.write('retryJob', now + outcome.wait, outcome.error, ...fence);
      case 'released':
        return writes.write('releaseJob', now, ...fence);
      case 'died':
        return writes.write('recordDeath', now, ...fence);
    }
  }

  /** Reads the deliveries of claimed jobs. */
  function readDeliveries(claimed: readonly Row[]): ReadonlyMap<number, StoredDelivery> {
    const seqs = JSON.stringify([...new Set(claimed.map(([, , , delivery]) => Number(delivery)))]);
    const rows = counted(deliveriesTally, () =>
      readRows<StoredDelivery & { readonly seq: number }>(deliveries, seqs),
    );
    return new Map(
      rows.map(({ seq, id, source, event, dataPointer, contentType, body, receivedAt }) => [
        seq,
        { id, source, event, dataPointer, contentType, body, receivedAt },
      ]),
    );
  }

  return {
    append(delivery) {
      const { id, source, event, dataPointer, contentType, body, receivedAt, jobs } = delivery;
      const dedupKey = storedKey(delivery.dedupKey);
      const values = [id, source, event, dataPointer, contentType, body, receivedAt, dedupKey];
      const seqKnown = seqKnownSince === prunes;
      const steps: Step[] = [{ statement: seqKnown ? 'appendDelivery' : 'appendAfterPrune', values }];
      if (jobs.length > 0) {
        // The wall clock may have been set forwards and back.
        steps.push({ statement: 'addJobs', values: [Math.min(receivedAt, clock()), jobsJson(jobs)] });
      }
      if (dedupKey !== null) {
        steps.push({ statement: 'reviveDuplicate', values: [receivedAt, source, dedupKey] });
      }
      // The first call covers what an earlier process left; after a failure the next call does the work.
      if (appends++ % ZONE === 0) writes.write('addZones').catch(() => {});
      const read = dedupKey === null ? alwaysStored : readAppended;
      return writes.submit(steps, seqKnown ? read : afterPrune(read));
    },

    idOf: (source, dedupKey) => readRow<{ id: string }>(idOfKey, source, storedKey(dedupKey))?.id,

    due(targets, now = clock()) {
      const rows = counted(dueTally, () =>
        readRows<{ target: string }>(dueTargets, JSON.stringify(targets), now),
      );
      return rows.map(({ target }) => target);
    },

    dueSuspects(targets, now = clock()) {
      const rows = counted(dueTally, () =>
        readRows<{ target: string }>(suspectTargets, JSON.stringify(targets), now),
      );
      return rows.map(({ target }) => target);
    },

    async claim(target, limit, owner, lease, { held = [], suspects = false, now = clock() } = {}) {
      const values = [owner, now + lease, target, now, limit, JSON.stringify(held)];
      const claimed = await writes.write(suspects ? 'claimSuspects' : 'claimJobs', ...values);
      if (claimed.length === 0) return [];
      const found = readDeliveries(claimed);
      return claimed
        .map(([job, attempt, deaths, delivery]) => ({
          job: Number(job),
          target,
          attempt: Number(attempt),
          deaths: Number(deaths),
          delivery: found.get(Number(delivery)),
        }))
        .filter((job): job is ClaimedJob => job.delivery !== undefined)
        .sort((a, b) => a.job - b.job);
    },

    async renew(owner, jobs, lease, now = clock()) {
      const rows = await writes.write('renewLeases', now + lease, owner, JSON.stringify(jobs));
      const renewed = new Set(rows.map(([seq]) => Number(seq)));
      return { renewed: [...renewed], lost: jobs.filter((job) => !renewed.has(job)) };
    },

    async settle({ job, attempt, deaths }, owner, outcome, now = clock()) {
      return (await recordOutcome([job, owner, attempt, deaths], outcome, now)).length > 0;
    },

    async recordHeartbeat(targets, now) {
      await writes.submit([
        { statement: 'recordHeartbeat', values: [now, JSON.stringify(targets)] },
        { statement: 'registerWaitingTargets', values: [now] },
      ]);
    },

    async expireOrphans(before, limit, error, now) {
      const rows = await writes.write('expireOrphans', error, now, before, limit);
      return rows.map(([target]) => String(target));
    },

    backlog() {
      const row = counted(backlogTally, () =>
        readRow<{ open: number; dead: number; oldestAt: number | null }>(jobCounts),
      );
      return { open: row?.open ?? 0, dead: row?.dead ?? 0, oldestAt: row?.oldestAt ?? undefined };
    },

    async prune(before, limit, settledOnly) {
      const found = readRows<{ seq: number }>(prunable, before, settledOnly ? 1 : 0, limit);
      if (found.length === 0) return 0;
      const seqs = JSON.stringify(found.map(({ seq }) => seq));
      prunes++;
      const [, , removed = []] = await writes.submit([
        { statement: 'keepHighest', values: [] },
        { statement: 'pruneJobs', values: [seqs] },
        { statement: 'pruneDeliveries', values: [seqs] },
        { statement: 'pruneZones', values: [seqs] },
      ]);
      return removed.length;
    },

    clock,

    size: () => readRow<{ size: number }>(usedBytes)?.size ?? 0,
  };
}
