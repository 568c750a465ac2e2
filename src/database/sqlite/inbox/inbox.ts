import type { DatabaseSync } from 'node:sqlite';
import { SUSPECT_DEATHS } from '../../../inbox/deaths.ts';
import type { ClaimedJob, StoredDelivery } from '../../../inbox/delivery.ts';
import type { Appended, Inbox } from '../../../inbox/inbox.ts';
import { type BacklogRow, backlogAt, readBacklog } from '../../inbox-sql.ts';
import { counted, type DatabaseObserver } from '../../observer.ts';
import { storedKey } from '../../stored-key.ts';
import { readRow, readRows } from '../read-row.ts';
import type { Row, Step, StepRows } from '../writer/batch.ts';
import type { Writer } from '../writer/writer.ts';
import { type AppendSteps, appendStepsBy, readAppended, readHandedOver } from './append-steps.ts';
import { sqliteDeadLetters } from './dead-letters.ts';
import { SIZE, ZONE } from './delivery-zones.ts';
import { sqliteEnqueued } from './enqueued.ts';
import { sqliteMarks } from './marks.ts';
import { pruneValues } from './pruner.ts';
import { sqliteRelay } from './relay.ts';
import { forgotten } from './remembered-keys.ts';
import { doneStep, settleSteps } from './settle-steps.ts';
import { steadyClock } from './steady-clock.ts';

const ADD_ZONES: readonly Step[] = [
  { statement: 'countTail', values: [] },
  { statement: 'addZones', values: [] },
];

const ID_OF_KEY = `
  SELECT id FROM deliveries WHERE source = ?1 AND dedup_key = ?2
  UNION ALL SELECT id FROM remembered_keys WHERE source = ?1 AND dedup_key = ?2 LIMIT 1`;

const alwaysStored = (): Appended => 'stored';

/** Claimed rows in the order in which their attempts begin. */
const byPriority = (a: Row, b: Row) => Number(b[5]) - Number(a[5]) || Number(a[0]) - Number(b[0]);

const isSettled = ([settled = []]: StepRows): boolean => settled.length > 0;

/** The inbox in SQLite. Reads run on the caller's thread, writes go through the queues of the writer. */
export function sqliteInbox(
  reads: DatabaseSync,
  { queue: writes, background }: Pick<Writer, 'queue' | 'background'>,
  observer: DatabaseObserver,
): Inbox {
  const clock = steadyClock();
  let appends = 0;
  const stepsOf = appendStepsBy(clock);
  const appendSteps: AppendSteps = (...given) => {
    // The first call covers what an earlier process left; after a failure the next call does the work.
    if (appends++ % ZONE === 0) writes.submit(ADD_ZONES).catch(() => {});
    return stepsOf(...given);
  };
  const dueTally = observer.reads('inbox.due');
  const deliveriesTally = observer.reads('inbox.deliveries');
  const backlogTally = observer.reads('inbox.backlog');
  const idOfKey = reads.prepare(ID_OF_KEY);
  const dueTargets = reads.prepare(`
    SELECT value AS target FROM json_each(?)
    WHERE EXISTS (SELECT 1 FROM jobs WHERE target = value AND status = 'open' AND NOT waits AND due_at <= ?)`);
  const suspectTargets = reads.prepare(`
    SELECT value AS target FROM json_each(?)
    WHERE EXISTS (SELECT 1 FROM jobs INDEXED BY jobs_suspect
      WHERE target = value AND status = 'open' AND NOT waits AND due_at <= ? AND deaths > 0 AND deaths + (owner IS NOT NULL) >= ${SUSPECT_DEATHS})`);
  const deliveries = reads.prepare(`
    SELECT seq, id, source, event, sender_event AS senderEvent, data_pointer AS dataPointer,
      content_type AS contentType, headers, trace, body, received_at AS receivedAt
    FROM deliveries WHERE seq IN (SELECT value FROM json_each(?))`);
  const jobCounts = reads.prepare(backlogAt('?1'));
  const size = reads.prepare(SIZE);

  /** The jobs of claimed rows, with their deliveries. */
  function claimedJobs(target: string, claimed: readonly Row[]): readonly ClaimedJob[] {
    if (claimed.length === 0) return [];
    const found = readDeliveries(claimed);
    return claimed
      .toSorted(byPriority)
      .map(([job, attempt, deaths, delivery, ordered]) => ({
        job: Number(job),
        target,
        attempt: Number(attempt),
        deaths: Number(deaths),
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

  return {
    append(delivery) {
      return writes.submit(appendSteps(delivery), delivery.dedupKey === null ? alwaysStored : readAppended);
    },

    appendAndClaim(delivery, handOver) {
      return writes.submit(appendSteps(delivery, undefined, handOver), (rows) => {
        const appended = delivery.dedupKey === null ? 'stored' : readAppended(rows);
        return { appended, jobs: appended === 'stored' ? readHandedOver(delivery, handOver, rows) : [] };
      });
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
      return claimedJobs(target, await writes.write(suspects ? 'claimSuspects' : 'claimJobs', ...values));
    },

    async renew(owner, jobs, lease, now = clock()) {
      const rows = await writes.write('renewLeases', now + lease, owner, JSON.stringify(jobs));
      const renewed = new Set(rows.map(([seq]) => Number(seq)));
      return { renewed: [...renewed], lost: jobs.filter((job) => !renewed.has(job)) };
    },

    settle(job, owner, outcome, now = clock()) {
      return writes.submit(settleSteps(job, owner, outcome, now), isSettled);
    },

    settleDone(successes, owner) {
      const now = clock();
      const steps = successes.map(({ job, duration }) => doneStep(job, owner, duration, now));
      return writes.submit(steps, (rows) => rows.map((row) => row.length > 0));
    },

    async finish(job, owner, outcome, { lease, maxBytes }, now = clock()) {
      const next: Step = { statement: 'claimNext', values: [owner, now + lease, job.job, now, maxBytes] };
      const steps = settleSteps(job, owner, outcome, now, next);
      const rows = await writes.submit(steps);
      const claimed = claimedJobs(job.target, rows[steps.indexOf(next)] ?? []);
      return { recorded: isSettled(rows), next: claimed[0] };
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
      const row = counted(backlogTally, () => readRow<BacklogRow>(jobCounts, Date.now()));
      return readBacklog(row ?? { open: 0, dead: 0, planned: 0, receivedAt: null, runAt: null });
    },

    async prune(rule) {
      // A file has no slots.
      if (rule.kind === 'bodies') return { removed: 0, looked: 0, isLast: true };
      const [row = []] = await background.write('prune', ...pruneValues(rule));
      const [removed = 0, looked = 0, isLast = 1] = row.map(Number);
      return { removed, looked, isLast: isLast === 1 };
    },

    async forgetKeys(before, max) {
      return forgotten((await background.write('forgetKeys', before, max)).length);
    },

    marks: sqliteMarks(reads, writes, appendSteps),
    enqueued: sqliteEnqueued(reads, writes, appendSteps),
    relay: sqliteRelay(reads, writes, appendSteps),
    deadLetters: sqliteDeadLetters(reads),
    clock,

    size: () => readRow<{ size: number }>(size)?.size ?? 0,
  };
}
