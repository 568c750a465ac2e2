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
import type { Notifier } from '../notifier.ts';
import type { Row, Statement } from '../pool/connection.ts';
import { type Server, writeFailure } from '../pool/server.ts';
import { storable, storableKey, stored } from '../text.ts';
import { DELIVERY, storedDelivery } from './delivery-row.ts';
import { awaitEarlierWriters } from './delivery-writers.ts';

const SUMMARY = `
  d.seq, d.id, d.source, d.event, d.received_at, octet_length(d.body), ${STATUS},
  (SELECT coalesce(sum(attempts), 0)::int FROM jobs WHERE delivery = d.seq)`;

/** The condition of a filter; null parameters match everything. */
const MATCHES = `
  ($1::text IS NULL OR event = $1) AND ($2::text IS NULL OR source = $2)
  AND ($3::bigint IS NULL OR received_at >= $3) AND ($4::bigint IS NULL OR received_at < $4)
  AND ($5::text IS NULL OR ${STATUS} = $5)`;

/** Maximum number of deliveries that a page scans. */
const WINDOW = 5_000;

/** The statements of a page: where its window ends, and the matches in the window. */
interface Listing {
  readonly window: Statement;
  readonly matching: Statement;
}

function listing(forward: boolean): Listing {
  const [beyond, within, last, order] = forward ? ['>', '<=', 'max', 'ASC'] : ['<', '>=', 'min', 'DESC'];
  return {
    window: {
      text: `
        SELECT ${last}(seq), count(*)
        FROM (SELECT seq FROM deliveries WHERE seq ${beyond} $1 ORDER BY seq ${order} LIMIT ${WINDOW}) AS looked`,
    },
    matching: {
      text: `
        SELECT ${SUMMARY} FROM deliveries AS d
        WHERE seq ${beyond} $6 AND seq ${within} $7 AND ${MATCHES} ORDER BY seq ${order} LIMIT $8`,
    },
  };
}

const NEWEST_FIRST = listing(false);
const OLDEST_FIRST = listing(true);
const FIND = { text: `SELECT ${SUMMARY}, ${DELIVERY} FROM deliveries AS d WHERE id = $1` };
const JOBS = {
  text: `
    SELECT target, attempts, due_at, error, finished_at, ${JOB_STATUS}
    FROM jobs WHERE delivery = $1 ORDER BY seq`,
};
// Serialises concurrent replays, so that the second one sees the result of the first.
const LOCK = { text: 'SELECT seq FROM deliveries WHERE id = $1 FOR UPDATE' };
const REPLAY_JOBS = {
  text: `
    UPDATE jobs SET status = 'open', attempts = 0, due_at = $1, error = NULL, finished_at = NULL
    WHERE delivery = (SELECT seq FROM deliveries WHERE id = $2) AND target = ANY ($3::text[])
      AND (SELECT count(*) FILTER (WHERE status = 'open') FROM jobs AS other WHERE other.delivery = jobs.delivery) = 0
    RETURNING seq`,
};
const REPLAY_UNHANDLED = {
  text: `
    INSERT INTO jobs (delivery, due_at, target, order_key)
    SELECT d.seq, $1, job.target, job.order_key
    FROM deliveries AS d, unnest($3::text[], $4::text[]) WITH ORDINALITY AS job (target, order_key, nth)
    WHERE d.id = $2 AND NOT EXISTS (SELECT 1 FROM jobs WHERE delivery = d.seq)
    ORDER BY nth RETURNING seq`,
};
const DISCARD = {
  text: `
    UPDATE jobs SET status = 'discarded', finished_at = $1, owner = NULL
    WHERE delivery = (SELECT seq FROM deliveries WHERE id = $2) AND status IN ('open', 'dead') RETURNING seq`,
};

/** The delivery log in PostgreSQL. */
export class PostgresDeliveryLog implements DeliveryLog {
  readonly #server: Server;
  readonly #notifier: Notifier;

  constructor(server: Server, notifier: Notifier) {
    this.#server = server;
    this.#notifier = notifier;
  }

  async list(
    filter: DeliveryFilter,
    limit: number,
    cursor: DeliveryCursor = { before: Number.MAX_SAFE_INTEGER },
  ): Promise<DeliveryPage> {
    const forward = 'after' in cursor;
    const { window, matching } = forward ? OLDEST_FIRST : NEWEST_FIRST;
    const from = forward ? cursor.after : cursor.before;
    const [bounds] = await this.#server.readAlone(window, [from]);
    const [edge, looked] = (bounds ?? []) as [(number | null)?, number?];
    if (edge === null || edge === undefined) return { items: [], next: undefined };
    // In order of arrival, no delivery may be skipped that has a lower `seq` but is not committed yet.
    if (forward) await awaitEarlierWriters(this.#server);
    // One more than the limit, to know whether there is another page.
    const rows = await this.#server.readAlone(matching, [...conditions(filter), from, edge, limit + 1]);
    const items = rows.slice(0, limit).map(summary);
    if (rows.length > limit) return { items, next: items.at(-1)?.seq };
    return { items, next: looked === WINDOW ? edge : undefined };
  }

  async find(id: string): Promise<DeliveryDetail | undefined> {
    const [row] = await this.#server.readAlone(FIND, [storable(id)]);
    if (row === undefined) return undefined;
    const found = summary(row);
    const jobs = await this.#server.readAlone(JOBS, [found.seq]);
    return { ...found, ...storedDelivery(row.slice(SUMMARY_COLUMNS)), jobs: jobs.map(jobDetail) };
  }

  async replay(id: string, jobs: readonly NewJob[], now: number): Promise<boolean> {
    const targets = jobs.map(({ target }) => storable(target));
    const keys = jobs.map(({ orderKey }) => storableKey(orderKey));
    const name = storable(id);
    const [, reopened = [], added = []] = await this.#server
      .transaction([
        [LOCK, [name]],
        [REPLAY_JOBS, [now, name, targets]],
        [REPLAY_UNHANDLED, [now, name, targets, keys]],
      ])
      .catch(rethrow);
    if (reopened.length + added.length === 0) return false;
    this.#notifier.notify('work');
    return true;
  }

  async discard(id: string, now: number): Promise<boolean> {
    return (await this.#server.write(DISCARD, [now, storable(id)]).catch(rethrow)).length > 0;
  }
}

const SUMMARY_COLUMNS = 8;

function summary(row: Row): DeliverySummary {
  const [seq, id, source, event, receivedAt, size, status, attempts] = row as [
    number,
    string,
    string,
    string | null,
    number,
    number,
    DeliverySummary['status'],
    number,
  ];
  return { seq, id, source: stored(source), event: stored(event), status, receivedAt, attempts, size };
}

function jobDetail(row: Row): JobDetail {
  const [target, attempts, dueAt, error, finishedAt, status] = row as [
    string,
    number,
    number,
    string | null,
    number | null,
    JobDetail['status'],
  ];
  return { target: stored(target), status, attempts, dueAt, error: stored(error), finishedAt };
}

function conditions({ status, event, source, since, until }: DeliveryFilter): readonly unknown[] {
  return [
    event === undefined ? null : storable(event),
    source === undefined ? null : storable(source),
    since ?? null,
    until ?? null,
    status ?? null,
  ];
}

function rethrow(error: unknown): never {
  throw writeFailure(error);
}
