import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import type { NewJob } from '../../inbox/delivery.ts';
import type {
  DeliveryDetail,
  DeliveryFilter,
  DeliveryLog,
  DeliveryStatus,
  DeliverySummary,
  JobDetail,
} from '../../inbox/delivery-log.ts';
import { type DeliveryRow, storedDelivery } from './delivery-row.ts';
import { readRow, readRows } from './read-row.ts';
import type { WriteQueue } from './write-queue.ts';

const HAS = (condition: string) => `EXISTS (SELECT 1 FROM jobs WHERE delivery = d.seq AND ${condition})`;

/** The condition that makes a status, in the order in which they are asked. */
const STATUS_OF: readonly (readonly [DeliveryStatus, string])[] = [
  ['processing', HAS(`status = 'open' AND owner IS NOT NULL`)],
  ['pending', HAS(`status = 'open'`)],
  ['dead', HAS(`status = 'dead'`)],
  ['done', HAS(`status = 'done'`)],
  ['discarded', HAS(`status = 'discarded'`)],
];
const STATUS = `CASE ${STATUS_OF.map(([status, condition]) => `WHEN ${condition} THEN '${status}'`).join(' ')} ELSE 'unhandled' END`;

const SUMMARY = `
  seq, id, source, event, received_at AS receivedAt, length(body) AS size, ${STATUS} AS status,
  (SELECT coalesce(sum(attempts), 0) FROM jobs WHERE delivery = d.seq) AS attempts`;

/** A filter whose members are null where they do not count. */
const MATCHES = `
  (:event IS NULL OR event = :event) AND (:source IS NULL OR source = :source)
  AND (:since IS NULL OR received_at >= :since) AND (:until IS NULL OR received_at < :until)
  AND (:status IS NULL OR ${STATUS} = :status)`;

/** The deliveries in SQLite, as people and tools see them. */
export class SqliteDeliveryLog implements DeliveryLog {
  readonly #writes: WriteQueue;
  readonly #list: StatementSync;
  readonly #count: StatementSync;
  readonly #find: StatementSync;
  readonly #jobs: StatementSync;

  constructor(reads: DatabaseSync, writes: WriteQueue) {
    this.#writes = writes;
    this.#list = reads.prepare(`
      SELECT ${SUMMARY} FROM deliveries AS d WHERE seq < :before AND ${MATCHES} ORDER BY seq DESC LIMIT :limit`);
    this.#count = reads.prepare(`SELECT count(*) AS count FROM deliveries AS d WHERE ${MATCHES}`);
    this.#find = reads.prepare(`SELECT ${SUMMARY}, data_pointer, content_type, body, received_at
      FROM deliveries AS d WHERE id = ?`);
    this.#jobs = reads.prepare(`
      SELECT target, attempts, due_at AS dueAt, error, finished_at AS finishedAt,
        CASE WHEN status <> 'open' THEN status WHEN owner IS NULL THEN 'pending' ELSE 'processing' END AS status
      FROM jobs WHERE delivery = ? ORDER BY seq`);
  }

  list(filter: DeliveryFilter, limit: number, before = Number.MAX_SAFE_INTEGER): readonly DeliverySummary[] {
    return readRows<DeliverySummary>(this.#list, { ...conditions(filter), limit, before }).map((row) => ({
      ...row,
    }));
  }

  count(filter: DeliveryFilter): number {
    return readRow<{ count: number }>(this.#count, conditions(filter))?.count ?? 0;
  }

  find(id: string): DeliveryDetail | undefined {
    const row = readRow<DeliverySummary & DeliveryRow>(this.#find, id);
    if (row === undefined) return undefined;
    const { seq, status, attempts, size } = row;
    const jobs = readRows<JobDetail>(this.#jobs, seq).map((job) => ({ ...job }));
    return { seq, ...storedDelivery(row), status, attempts, size, jobs };
  }

  async replay(id: string, jobs: readonly NewJob[], now: number): Promise<boolean> {
    const targets = JSON.stringify(jobs.map(({ target, orderKey }) => [target, orderKey]));
    const [reopened = [], added = []] = await this.#writes.writeAll([
      { statement: 'replayJobs', values: [now, id] },
      { statement: 'replayUnhandled', values: [now, targets, id] },
    ]);
    return reopened.length + added.length > 0;
  }

  async discard(id: string, now: number): Promise<boolean> {
    return (await this.#writes.write('discardJobs', now, id)).length > 0;
  }
}

function conditions({ status, event, source, since, until }: DeliveryFilter): Record<string, SQLInputValue> {
  return {
    status: status ?? null,
    event: event ?? null,
    source: source ?? null,
    since: since ?? null,
    until: until ?? null,
  };
}
