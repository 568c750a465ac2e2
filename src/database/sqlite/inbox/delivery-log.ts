import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import type { NewJob } from '../../../inbox/delivery.ts';
import type {
  DeliveryCursor,
  DeliveryDetail,
  DeliveryFilter,
  DeliveryLog,
  DeliveryPage,
  DeliverySummary,
  JobDetail,
} from '../../../inbox/delivery-log.ts';
import { JOB_STATUS, STATUS } from '../../inbox-sql.ts';
import { readRow, readRows } from '../read-row.ts';
import type { WriteQueue } from '../writer/write-queue.ts';
import { type DeliveryRow, jobsJson, storedDelivery } from './delivery-row.ts';
import { SEQ_OF_ID } from './delivery-zones.ts';

const SUMMARY = `
  seq, id, source, event, received_at AS receivedAt, length(body) AS size, ${STATUS} AS status,
  (SELECT coalesce(sum(attempts), 0) FROM jobs WHERE delivery = d.seq) AS attempts`;

/** The condition of a filter; null parameters match everything. */
const MATCHES = `
  (:event IS NULL OR event = :event) AND (:source IS NULL OR source = :source)
  AND (:since IS NULL OR received_at >= :since) AND (:until IS NULL OR received_at < :until)
  AND (:status IS NULL OR ${STATUS} = :status)`;

/** Maximum number of deliveries that a page scans, because reads block the event loop. */
const WINDOW = 5_000;

/** The statements of a page: where its window ends, and the matches in the window. */
interface Listing {
  readonly window: StatementSync;
  readonly matching: StatementSync;
}

function prepareListing(reads: DatabaseSync, forward: boolean): Listing {
  const [beyond, within, last, order] = forward ? ['>', '<=', 'max', 'ASC'] : ['<', '>=', 'min', 'DESC'];
  return {
    window: reads.prepare(`
      SELECT ${last}(seq) AS edge, count(*) AS looked
      FROM (SELECT seq FROM deliveries WHERE seq ${beyond} ? ORDER BY seq ${order} LIMIT ${WINDOW})`),
    matching: reads.prepare(`
      SELECT ${SUMMARY} FROM deliveries AS d
      WHERE seq ${beyond} :from AND seq ${within} :edge AND ${MATCHES} ORDER BY seq ${order} LIMIT :limit`),
  };
}

/** The delivery log in SQLite. */
export class SqliteDeliveryLog implements DeliveryLog {
  readonly #writes: WriteQueue;
  readonly #newestFirst: Listing;
  readonly #oldestFirst: Listing;
  readonly #seqOfId: StatementSync;
  readonly #find: StatementSync;
  readonly #jobs: StatementSync;

  constructor(reads: DatabaseSync, writes: WriteQueue) {
    this.#writes = writes;
    this.#newestFirst = prepareListing(reads, false);
    this.#oldestFirst = prepareListing(reads, true);
    this.#find = reads.prepare(`SELECT ${SUMMARY}, data_pointer, content_type, body, received_at
      FROM deliveries AS d WHERE seq = ?`);
    this.#seqOfId = reads.prepare(SEQ_OF_ID);
    this.#jobs = reads.prepare(`
      SELECT target, attempts, due_at AS dueAt, error, finished_at AS finishedAt, ${JOB_STATUS} AS status
      FROM jobs WHERE delivery = ? ORDER BY seq`);
  }

  list(
    filter: DeliveryFilter,
    limit: number,
    cursor: DeliveryCursor = { before: Number.MAX_SAFE_INTEGER },
  ): DeliveryPage {
    const forward = 'after' in cursor;
    const { window, matching } = forward ? this.#oldestFirst : this.#newestFirst;
    const from = forward ? cursor.after : cursor.before;
    const { edge = null, looked = 0 } = readRow<{ edge: number | null; looked: number }>(window, from) ?? {};
    if (edge === null) return { items: [], next: undefined };
    // One more than the limit, to know whether there is another page.
    const rows = readRows<DeliverySummary>(matching, { ...conditions(filter), from, edge, limit: limit + 1 });
    const items = rows.slice(0, limit).map((row) => ({ ...row }));
    if (rows.length > limit) return { items, next: items.at(-1)?.seq };
    return { items, next: looked === WINDOW ? edge : undefined };
  }

  find(id: string): DeliveryDetail | undefined {
    const seq = this.#seqOf(id);
    if (seq === undefined) return undefined;
    const row = readRow<DeliverySummary & DeliveryRow>(this.#find, seq);
    if (row === undefined) return undefined;
    const { status, attempts, size } = row;
    const jobs = readRows<JobDetail>(this.#jobs, seq).map((job) => ({ ...job }));
    return { seq, ...storedDelivery(row), status, attempts, size, jobs };
  }

  async replay(id: string, jobs: readonly NewJob[], now: number): Promise<boolean> {
    const seq = this.#seqOf(id);
    if (seq === undefined) return false;
    const targets = jobsJson(jobs);
    const [reopened = [], added = []] = await this.#writes.submit([
      { statement: 'replayJobs', values: [now, seq, targets] },
      { statement: 'replayUnhandled', values: [now, targets, seq] },
    ]);
    return reopened.length + added.length > 0;
  }

  async discard(id: string, now: number): Promise<boolean> {
    const seq = this.#seqOf(id);
    return seq !== undefined && (await this.#writes.write('discardJobs', now, seq)).length > 0;
  }

  #seqOf(id: string): number | undefined {
    return readRow<{ seq: number }>(this.#seqOfId, id)?.seq;
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
