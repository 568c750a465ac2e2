import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { ClaimedJob, NewDelivery, StoredDelivery } from '../../../inbox/delivery.ts';
import type { Appended, Backlog, Inbox, Outcome } from '../../../inbox/inbox.ts';
import { counted, type DatabaseObserver, type ReadTally } from '../../observer.ts';
import { storedKey } from '../../stored-key.ts';
import { readRow, readRows } from '../read-row.ts';
import type { Row, Step, StepRows } from '../writer/batch.ts';
import type { WriteQueue } from '../writer/write-queue.ts';
import { ZONE } from './delivery-zones.ts';
import { jobsJson } from './jobs-json.ts';

const alwaysStored = (): Appended => 'stored';

/** Reads the rows of an append with a dedup key: the first step inserts the delivery, the last one revives dead jobs. */
function readAppended(rows: StepRows): Appended {
  if ((rows[0] ?? []).length > 0) return 'stored';
  return (rows.at(-1) ?? []).length > 0 ? 'revived' : 'duplicate';
}

/** The inbox in SQLite. Reads run on the caller's thread, writes go through the queue. */
export class SqliteInbox implements Inbox {
  readonly #writes: WriteQueue;
  readonly #tallies: Readonly<Record<'due' | 'deliveries' | 'backlog', ReadTally>>;
  readonly #due: StatementSync;
  readonly #deliveries: StatementSync;
  readonly #backlog: StatementSync;
  readonly #prunable: StatementSync;
  readonly #size: StatementSync;
  #appends = 0;
  /** The number of prunes, of which an earlier process may have done one. */
  #prunes = 1;
  /**
   * The value of `#prunes` at the last successful `appendAfterPrune`. While both are equal, SQLite continues the `seq`
   * by itself.
   */
  #seqKnownSince = 0;

  constructor(reads: DatabaseSync, writes: WriteQueue, observer: DatabaseObserver) {
    this.#writes = writes;
    this.#tallies = {
      due: observer.reads('inbox.due'),
      deliveries: observer.reads('inbox.deliveries'),
      backlog: observer.reads('inbox.backlog'),
    };
    this.#due = reads.prepare(`
      SELECT value AS target FROM json_each(?)
      WHERE EXISTS (SELECT 1 FROM jobs WHERE target = value AND status = 'open' AND due_at <= ?)`);
    this.#deliveries = reads.prepare(`
      SELECT seq, id, source, event, data_pointer AS dataPointer, content_type AS contentType, body,
        received_at AS receivedAt
      FROM deliveries WHERE seq IN (SELECT value FROM json_each(?))`);
    // "+" makes SQLite use the index of open jobs; in the index of all jobs it would scan the done ones.
    this.#backlog = reads.prepare(`
      SELECT (SELECT count(*) FROM jobs WHERE status = 'open') AS open,
        (SELECT count(*) FROM jobs WHERE status = 'dead') AS dead,
        (SELECT received_at FROM deliveries
          WHERE seq = (SELECT min(+delivery) FROM jobs WHERE status = 'open')) AS oldestAt`);
    this.#prunable = reads.prepare(`
      SELECT seq FROM deliveries
      WHERE received_at < ?1
        AND NOT EXISTS (SELECT 1 FROM jobs WHERE delivery = deliveries.seq AND status = 'open')
        AND (NOT ?2 OR (EXISTS (SELECT 1 FROM jobs WHERE delivery = deliveries.seq)
          AND NOT EXISTS (SELECT 1 FROM jobs WHERE delivery = deliveries.seq AND status = 'dead')))
      ORDER BY seq LIMIT ?3`);
    this.#size = reads.prepare(`
      SELECT (page_count - freelist_count) * page_size AS size
      FROM pragma_page_count, pragma_freelist_count, pragma_page_size`);
  }

  append(delivery: NewDelivery): Promise<Appended> {
    const { id, source, event, dataPointer, contentType, body, receivedAt, jobs } = delivery;
    const dedupKey = storedKey(delivery.dedupKey);
    const values = [id, source, event, dataPointer, contentType, body, receivedAt, dedupKey];
    const seqKnown = this.#seqKnownSince === this.#prunes;
    const steps: Step[] = [{ statement: seqKnown ? 'appendDelivery' : 'appendAfterPrune', values }];
    if (jobs.length > 0) {
      steps.push({ statement: 'addJobs', values: [receivedAt, jobsJson(jobs)] });
    }
    if (dedupKey !== null) {
      steps.push({ statement: 'reviveDuplicate', values: [receivedAt, source, dedupKey] });
    }
    // The first call covers what an earlier process left; after a failure the next call does the work.
    if (this.#appends++ % ZONE === 0) this.#writes.write('addZones').catch(() => {});
    const read = dedupKey === null ? alwaysStored : readAppended;
    return this.#writes.submit(steps, seqKnown ? read : this.#afterPrune(read));
  }

  /** Reads the rows of `appendAfterPrune`; once it has stored a delivery, plain appends continue its `seq`. */
  #afterPrune(read: (rows: StepRows) => Appended): (rows: StepRows) => Appended {
    const prunes = this.#prunes;
    return (rows) => {
      const appended = read(rows);
      if (appended === 'stored') this.#seqKnownSince = prunes;
      return appended;
    };
  }

  due(targets: readonly string[], now: number): readonly string[] {
    const rows = counted(this.#tallies.due, () =>
      readRows<{ target: string }>(this.#due, JSON.stringify(targets), now),
    );
    return rows.map(({ target }) => target);
  }

  async claim(
    target: string,
    limit: number,
    owner: string,
    now: number,
    leaseEnd: number,
  ): Promise<readonly ClaimedJob[]> {
    const claimed = await this.#writes.write('claimJobs', owner, leaseEnd, target, now, limit);
    if (claimed.length === 0) return [];
    const deliveries = this.#readDeliveries(claimed);
    return claimed
      .map(([job, attempt, delivery]) => ({
        job: Number(job),
        target,
        attempt: Number(attempt),
        delivery: deliveries.get(Number(delivery)),
      }))
      .filter((job): job is ClaimedJob => job.delivery !== undefined)
      .sort((a, b) => a.job - b.job);
  }

  async renew(owner: string, jobs: readonly number[], leaseEnd: number): Promise<void> {
    await this.#writes.write('renewLeases', leaseEnd, owner, JSON.stringify(jobs));
  }

  async settle({ job, attempt }: ClaimedJob, owner: string, outcome: Outcome, now: number): Promise<boolean> {
    const fence = [job, owner, attempt] as const;
    const rows = await this.#settle(fence, outcome, now);
    return rows.length > 0;
  }

  #settle(fence: readonly [number, string, number], outcome: Outcome, now: number): Promise<readonly Row[]> {
    switch (outcome.kind) {
      case 'done':
        return this.#writes.write('finishJob', 'done', null, now, ...fence);
      case 'dead':
        return this.#writes.write('finishJob', 'dead', outcome.error, now, ...fence);
      case 'retry':
        return this.#writes.write('retryJob', outcome.dueAt, outcome.error, ...fence);
      case 'released':
        return this.#writes.write('releaseJob', now, ...fence);
    }
  }

  async recordHeartbeat(targets: readonly string[], now: number): Promise<void> {
    await this.#writes.submit([
      { statement: 'recordHeartbeat', values: [now, JSON.stringify(targets)] },
      { statement: 'registerWaitingTargets', values: [now] },
    ]);
  }

  async expireOrphans(before: number, limit: number, error: string, now: number): Promise<readonly string[]> {
    const rows = await this.#writes.write('expireOrphans', error, now, before, limit);
    return rows.map(([target]) => String(target));
  }

  backlog(): Backlog {
    const row = counted(this.#tallies.backlog, () =>
      readRow<{ open: number; dead: number; oldestAt: number | null }>(this.#backlog),
    );
    return { open: row?.open ?? 0, dead: row?.dead ?? 0, oldestAt: row?.oldestAt ?? undefined };
  }

  async prune(before: number, limit: number, settledOnly: boolean): Promise<number> {
    const found = readRows<{ seq: number }>(this.#prunable, before, settledOnly ? 1 : 0, limit);
    if (found.length === 0) return 0;
    const seqs = JSON.stringify(found.map(({ seq }) => seq));
    this.#prunes++;
    const [, , removed = []] = await this.#writes.submit([
      { statement: 'keepHighest', values: [] },
      { statement: 'pruneJobs', values: [seqs] },
      { statement: 'pruneDeliveries', values: [seqs] },
      { statement: 'pruneZones', values: [seqs] },
    ]);
    return removed.length;
  }

  size(): number {
    return readRow<{ size: number }>(this.#size)?.size ?? 0;
  }

  /** Reads the deliveries of claimed jobs. */
  #readDeliveries(claimed: readonly Row[]): ReadonlyMap<number, StoredDelivery> {
    const seqs = JSON.stringify([...new Set(claimed.map(([, , delivery]) => Number(delivery)))]);
    const rows = counted(this.#tallies.deliveries, () =>
      readRows<StoredDelivery & { seq: number }>(this.#deliveries, seqs),
    );
    return new Map(
      rows.map(({ seq, id, source, event, dataPointer, contentType, body, receivedAt }) => [
        seq,
        { id, source, event, dataPointer, contentType, body, receivedAt },
      ]),
    );
  }
}
