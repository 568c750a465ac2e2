import type { DatabaseSync } from 'node:sqlite';
import { SUSPECT_DEATHS } from '../../../inbox/deaths.ts';
import type { ClaimedJob, StoredDelivery } from '../../../inbox/delivery.ts';
import type { Appended, Inbox, Outcome } from '../../../inbox/inbox.ts';
import { counted, type DatabaseObserver } from '../../observer.ts';
import { storedKey } from '../../stored-key.ts';
import { readRow, readRows } from '../read-row.ts';
import type { Row, Step, StepRows } from '../writer/batch.ts';
import type { Writer } from '../writer/writer.ts';
import { SIZE, ZONE } from './delivery-zones.ts';
import { jobsJson } from './jobs-json.ts';
import { pruneValues } from './pruner.ts';
import { steadyClock } from './steady-clock.ts';

const ADD_ZONES: readonly Step[] = [
  { statement: 'countTail', values: [] },
  { statement: 'addZones', values: [] },
];

const alwaysStored = (): Appended => 'stored';

/** Reads the rows of an append with a dedup key: the first step inserts the delivery, the last one revives dead jobs. */
function readAppended(rows: StepRows): Appended {
  if ((rows[0] ?? []).length > 0) return 'stored';
  return (rows.at(-1) ?? []).length > 0 ? 'revived' : 'duplicate';
}

/** The inbox in SQLite. Reads run on the caller's thread, writes go through the queues of the writer. */
export function sqliteInbox(
  reads: DatabaseSync,
  { queue: writes, background }: Pick<Writer, 'queue' | 'background'>,
  observer: DatabaseObserver,
): Inbox {
  const clock = steadyClock();
  let appends = 0;
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
  const size = reads.prepare(SIZE);

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
      const steps: Step[] = [{ statement: 'appendDelivery', values }];
      if (jobs.length > 0) {
        // The wall clock may have been set forwards and back.
        steps.push({ statement: 'addJobs', values: [Math.min(receivedAt, clock()), jobsJson(jobs)] });
      }
      if (dedupKey !== null) {
        steps.push({ statement: 'reviveDuplicate', values: [receivedAt, source, dedupKey] });
      }
      // The first call covers what an earlier process left; after a failure the next call does the work.
      if (appends++ % ZONE === 0) writes.submit(ADD_ZONES).catch(() => {});
      return writes.submit(steps, dedupKey === null ? alwaysStored : readAppended);
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

    async claim(target, limit, owner, lease, options = {}) {
      const { held = [], suspects = false, maxBytes = Number.MAX_SAFE_INTEGER, now = clock() } = options;
      const values = [owner, now + lease, target, now, limit, JSON.stringify(held), maxBytes];
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

    async prune(rule) {
      const [row = []] = await background.write('prune', ...pruneValues(rule));
      const [removed = 0, looked = 0, isLast = 1] = row.map(Number);
      return { removed, looked, isLast: isLast === 1 };
    },

    clock,

    size: () => readRow<{ size: number }>(size)?.size ?? 0,
  };
}
