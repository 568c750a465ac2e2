import { type MaybePromise, whenReady } from '../core/maybe-promise.ts';
import type { AttemptEntry } from '../inbox/inbox.ts';
import type {
  DeliveryCursor,
  DeliveryDetail,
  DeliveryFilter,
  DeliveryLog,
  DeliveryPage,
  DeliverySummary,
  JobDetail,
  ReplayedJob,
} from '../inbox/operations.ts';
import {
  ATTEMPTS,
  entriesByJob,
  JOB_STATUS,
  PLANNED_AT,
  STATUS,
  SUCCESS,
  storedKey,
  successEntry,
} from './inbox-sql.ts';

/** A row as an array of columns. */
type Row = readonly unknown[];

const summary = (size: string) => `
  d.seq, d.id, d.source, d.event, d.sender_event, d.received_at, ${size}, ${STATUS},
  (SELECT CAST(coalesce(sum(attempts), 0) AS int) FROM jobs WHERE delivery = d.seq),
  (SELECT min(${PLANNED_AT}) FROM jobs WHERE delivery = d.seq)`;

/**
 * The condition of a filter; null parameters match everything. `contains` is the condition on text in the
 * body.
 */
const matches = (contains: string) => `
  (CAST($4 AS text) IS NULL OR event = $4 OR sender_event = $4) AND (CAST($5 AS text) IS NULL OR source = $5)
  AND (CAST($6 AS bigint) IS NULL OR received_at >= $6) AND (CAST($7 AS bigint) IS NULL OR received_at < $7)
  AND (CAST($8 AS text) IS NULL OR ${STATUS} = $8) AND (CAST($9 AS text) IS NULL OR ${contains})`;

/** Sorts after every character of an id. */
const LAST = '\u{10ffff}';

/** Maximum number of deliveries that a page scans: reads of SQLite block the event loop. */
const WINDOW = 5_000;
/** The same for a search in bodies. */
const TEXT_WINDOW = 500;
/**
 * A page ends after the delivery whose event names bring their total size to this many bytes: senders choose
 * them.
 */
const MAX_EVENT_BYTES = 256 * 1024;

type Listing = ReturnType<typeof listing>;

/** The statements of a page: the first finds the end of its window, the second the matches within. */
function listing(forward: boolean, window: number, { size, contains }: LogSql) {
  const [beyond, within, last, order] = forward ? ['>', '<=', 'max', 'ASC'] : ['<', '>=', 'min', 'DESC'];
  return {
    window: `
      SELECT ${last}(seq), count(*)
      FROM (SELECT seq FROM deliveries WHERE seq ${beyond} $1 ORDER BY seq ${order} LIMIT ${window}) AS looked`,
    size: window,
    matching: `
      WITH found AS (
        SELECT seq, coalesce(octet_length(event), 0) + coalesce(octet_length(sender_event), 0) AS bytes
        FROM deliveries AS d
        WHERE seq ${beyond} $1 AND seq ${within} $2 AND ${matches(contains)} ORDER BY seq ${order} LIMIT $3 + 0),
      page AS (
        SELECT seq, count(*) OVER () AS matches,
          sum(bytes) OVER (ORDER BY seq ${order} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
        FROM found)
      SELECT ${summary(size)}, page.matches FROM page, deliveries AS d
      WHERE d.seq = page.seq AND coalesce(page.before, 0) < ${MAX_EVENT_BYTES} ORDER BY d.seq ${order}`,
  };
}

const JOBS = `
  SELECT seq, target, ${JOB_STATUS}, attempts, due_at, error, finished_at, crashes, ${PLANNED_AT}, ${SUCCESS}
  FROM jobs WHERE delivery = $1 ORDER BY seq`;

/** Ids of the deliveries with dedup key $1: one index lookup per source, of which there are few. */
const BY_SENDER = `
  WITH RECURSIVE senders (source) AS (
    SELECT min(source) FROM deliveries WHERE dedup_key IS NOT NULL
    UNION ALL
    SELECT (SELECT min(source) FROM deliveries WHERE dedup_key IS NOT NULL AND deliveries.source > senders.source)
    FROM senders WHERE senders.source IS NOT NULL)
  SELECT d.id FROM senders, deliveries AS d WHERE d.source = senders.source AND d.dedup_key = $1`;

/** Engine-specific parts of the statements. */
interface LogSql {
  /** The condition on row `d` to have the id `$1`. */
  readonly exact: string;
  /** Selects up to `$3` ids from `$1`, inclusive, to `$2`, exclusive. */
  readonly range: string;
  readonly body: string;
  /** Size of the body in bytes. */
  readonly size: string;
  /** The condition that the body contains the text `$9`. */
  readonly contains: string;
}

/** The delivery log of a database; both engines share its read statements. */
export abstract class DatabaseDeliveryLog implements DeliveryLog {
  abstract readonly maxChanges: number;
  readonly #find: string;
  readonly #exact: string;
  readonly #range: string;
  /** The statements of a page, by direction and by whether bodies are searched. */
  readonly #listing: (forward: boolean, inBodies: boolean) => Listing;

  constructor(sql: LogSql) {
    const { exact, range, body, size } = sql;
    this.#find = `SELECT ${summary(size)}, d.data_pointer, d.content_type, d.headers, d.trace, ${body} FROM deliveries AS d WHERE ${exact}`;
    this.#exact = `SELECT d.id FROM deliveries AS d WHERE ${exact}`;
    this.#range = range;
    const listings = [false, true].map((forward) =>
      [WINDOW, TEXT_WINDOW].map((window) => listing(forward, window, sql)),
    );
    this.#listing = (forward, inBodies) =>
      listings[Number(forward)]?.[Number(inBodies)] ?? listing(forward, WINDOW, sql);
  }

  /** Runs a statement with the values of `$1`, `$2` and so on. Fails with StoreUnavailableError. */
  protected abstract read(
    text: string,
    values: readonly (string | number | null)[],
  ): MaybePromise<readonly Row[]>;

  /** A text as the engine stores it. */
  protected encode<T extends string | null>(text: T): T {
    return text;
  }

  /** A dedup key as the engine stores it. */
  protected encodeKey(key: string): string {
    return storedKey(key);
  }

  /** The inverse of `encode`. */
  protected decode<T extends string | null>(text: T): T {
    return text;
  }

  /** Waits until every `seq` below one already seen is visible or was rolled back. */
  protected awaitEarlier(): MaybePromise<void> {}

  abstract replay(id: string, jobs: readonly ReplayedJob[], now: number): Promise<boolean>;
  abstract discard(id: string, now: number): Promise<boolean>;

  list(
    filter: DeliveryFilter,
    limit: number,
    cursor: DeliveryCursor = { before: Number.MAX_SAFE_INTEGER },
  ): MaybePromise<DeliveryPage> {
    const forward = 'after' in cursor;
    const { window, matching, size } = this.#listing(forward, filter.text !== undefined);
    const from = forward ? cursor.after : cursor.before;
    return whenReady(this.read(window, [from]), ([bounds]) => {
      const [edge, looked] = (bounds ?? []) as [(number | null)?, number?];
      if (edge === null || edge === undefined) return { items: [], next: undefined };
      // In order of arrival, a page must not skip deliveries with a lower `seq` that are not committed yet.
      return whenReady(forward ? this.awaitEarlier() : undefined, () => {
        // One more than the limit shows whether there is another page.
        const values = [from, edge, limit + 1, ...this.#conditions(filter)];
        return whenReady(this.read(matching, values), (rows) => {
          const items = rows.slice(0, limit).map((row) => this.#summary(row));
          const matched = Number(rows[0]?.[10] ?? 0);
          if (matched > items.length) return { items, next: items.at(-1)?.seq };
          return { items, next: looked === size ? edge : undefined };
        });
      });
    });
  }

  find(id: string): MaybePromise<DeliveryDetail | undefined> {
    return whenReady(this.read(this.#find, [this.encode(id)]), ([row]) => {
      if (row === undefined) return undefined;
      const summary = this.#summary(row);
      type Columns = [string, string | null, string | null, string | null, Uint8Array];
      const [dataPointer, contentType, headers, trace, body] = row.slice(10) as Columns;
      const texts = { dataPointer: this.decode(dataPointer), contentType: this.decode(contentType) };
      return whenReady(this.read(JOBS, [summary.seq]), (jobRows) =>
        whenReady(this.read(ATTEMPTS, [summary.seq]), (rows) => {
          const entries = entriesByJob(rows, (text) => this.decode(text));
          const jobs = jobRows.map((job) => this.#job(job, summary.receivedAt, entries));
          return { ...summary, ...texts, headers, trace, body, jobs };
        }),
      );
    });
  }

  resolve(name: string, limit: number): MaybePromise<readonly string[]> {
    if (name === '') return [];
    const text = this.encode(name);
    return whenReady(this.read(this.#exact, [text]), (exact) => {
      if (exact.length > 0) return [name];
      return whenReady(this.read(BY_SENDER, [this.encodeKey(name)]), (sent) =>
        whenReady(this.read(this.#range, [text, text + LAST, limit]), (begun) => [
          ...new Set([...sent, ...begun].map(([id]) => String(id))),
        ]),
      );
    });
  }

  #conditions({ event, source, since, until, status, text }: DeliveryFilter) {
    return [
      this.encode(event ?? null),
      this.encode(source ?? null),
      since ?? null,
      until ?? null,
      status ?? null,
      // Neither engine accepts NUL in a text.
      text?.replaceAll('\0', '') ?? null,
    ];
  }

  #summary(row: Row): DeliverySummary {
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
    ];
    const columns = row as Columns & Row;
    const [seq, id, source, event, senderEvent, receivedAt, size, status, attempts, plannedAt] = columns;
    const names = { event: this.decode(event), senderEvent: this.decode(senderEvent) };
    return { seq, id, source: this.decode(source), ...names, status, receivedAt, attempts, size, plannedAt };
  }

  #job(row: Row, receivedAt: number, entries: ReadonlyMap<number, readonly AttemptEntry[]>): JobDetail {
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
    const texts = { target: this.decode(target), error: this.decode(error) };
    const history = [...(entries.get(seq) ?? []), ...successEntry(row.slice(9))];
    // A priority moves `due_at` before the receipt.
    const dueAt = Math.max(due, receivedAt);
    return { ...texts, status, attempts, dueAt, plannedAt, finishedAt, crashes, history };
  }
}
