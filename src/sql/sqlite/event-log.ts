import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { ChangeEvent, EventLog, EventPage, EventPosition, UserEvent } from '../../relations/events.ts';
import type { WriteQueue } from '../sqlite-writer/write-queue.ts';
import { readEach, readRow } from './connection.ts';

/** Where a log of events is: a table whose key follows the order of commits, and the place of its relay. */
interface EventTables {
  readonly events: string;
  /** The key of the table. */
  readonly position: string;
  readonly relay: string;
}

/**
 * The statement that keeps at most ?1 events, none from before ?2, and removes at most ?3 at once. Events not
 * relayed yet stay, unless the relay has stopped.
 */
function pruneText({ events, position, relay }: EventTables): string {
  return `
    WITH oldest AS MATERIALIZED (SELECT ${position}, at FROM ${events} ORDER BY ${position} LIMIT ?3 + 0),
    newest AS MATERIALIZED (SELECT max(${position}) AS last FROM ${events})
    DELETE FROM ${events}
    WHERE ${position} <= (SELECT max(${position}) FROM oldest)
      AND ${position} < (SELECT last FROM newest)
      AND ${position} <= max(
        (SELECT last FROM newest) - ?1,
        coalesce((SELECT max(${position}) FROM oldest WHERE at < ?2), 0))
      AND ${position} < coalesce((SELECT position FROM ${relay} WHERE moved_at >= ?2), ${position} + 1)`;
}

type EventRow = EventPosition & Readonly<Record<string, unknown>>;

interface EventLogOptions<E extends ChangeEvent> {
  readonly reads: DatabaseSync;
  readonly writes: WriteQueue;
  readonly tables: EventTables;
  /** The expressions that read an event besides its position and time, by the names that `eventOf` gets. */
  readonly columns: string;
  /** The name of the statement of `pruneText` in the registry. Default: its SQL. */
  readonly prune?: string;
  eventOf(row: EventRow): E;
}

/** The events of a table in an SQLite file. One thread writes them, so their numbers follow the order of commits. */
export class SqliteEventLog<E extends ChangeEvent> implements EventLog<E> {
  readonly #options: EventLogOptions<E>;
  readonly #newest: StatementSync;
  readonly #read: StatementSync;
  readonly #prune: string;

  constructor(options: EventLogOptions<E>) {
    const { reads, columns } = options;
    const { events, position } = options.tables;
    this.#options = options;
    this.#prune = options.prune ?? pruneText(options.tables);
    const place = `SELECT ${position} AS position, at`;
    this.#newest = reads.prepare(`${place} FROM ${events} ORDER BY ${position} DESC LIMIT 1`);
    this.#read = reads.prepare(
      `${place}, ${columns} FROM ${events} WHERE ${position} >= ? ORDER BY ${position} LIMIT ? + 0`,
    );
  }

  newest(): EventPosition {
    return readRow<EventPosition>(this.#newest) ?? { position: 0, at: 0 };
  }

  read({ position, at }: EventPosition, limit: number, size: number): EventPage<E> | undefined {
    const events: E[] = [];
    let isKnown = false;
    let length = 0;
    readEach(this.#read, [position, limit + 1], (rows) => {
      for (const row of rows as Iterable<unknown> as Iterable<EventRow>) {
        if (isKnown) length += events[events.push(this.#options.eventOf(row)) - 1]?.json.length ?? 0;
        else isKnown = row.position === position && row.at === at;
        if (!isKnown || length >= size) break;
      }
    });
    return isKnown ? { events, more: events.length === limit || length >= size } : undefined;
  }

  async prune(maxEvents: number, before: number, limit: number): Promise<boolean> {
    const rows = await this.#options.writes.write(this.#prune, maxEvents, before, limit);
    return rows.length > 0;
  }
}

/** Number of creates whose events are stored in one write. */
const BATCH = 1_000;

/** Maximum number of creates whose events are not stored yet; beyond it, retention stores or skips them. */
const MAX_WAITING = 10_000;

/** When a user was created; rows inserted manually have no version. */
const CREATED_AT = `iif(version > 0, version, CAST(unixepoch('subsec') * 1000 AS INTEGER))`;

const USER_TABLES = { events: 'user_events', position: 'seq', relay: 'user_relay' } as const;

/** The statements that write events. */
export const EVENT_WRITES = {
  // The oldest creates that have no event yet.
  addCreates: `
    INSERT INTO user_events (type, at, user_id, name, email)
    SELECT 'created', ${CREATED_AT}, id, name, email FROM users
    WHERE id > (SELECT last FROM user_feed) ORDER BY id LIMIT ${BATCH}`,
  noteCreates: `
    UPDATE user_feed SET last = (SELECT user_id FROM user_events ORDER BY seq DESC LIMIT 1)
    WHERE changes() > 0`,
  // More creates wait than events may be kept, and no one has read since they started to wait. A returning
  // reader would find its event gone anyway, so these creates get no events, and the feed starts afresh.
  skipCreates: `
    UPDATE user_feed SET last = (SELECT max(id) FROM users)
    WHERE last < (SELECT max(id) FROM users) - ?1 AND NOT EXISTS (SELECT 1 FROM user_relay WHERE moved_at >= ?2)`,
  startEvents: `
    INSERT INTO user_events (type, at, user_id, name, email) SELECT 'start', ?, 0, '', '' WHERE changes() > 0`,
  forgetEvents: 'DELETE FROM user_events WHERE changes() > 0 AND seq < last_insert_rowid()',
  pruneEvents: pruneText(USER_TABLES),
} as const;

/**
 * The events of users in an SQLite file. The events of creates are stored later, when users are read as events
 * or changed.
 */
export class SqliteUserEventLog implements EventLog<UserEvent> {
  readonly #writes: WriteQueue;
  readonly #stored: SqliteEventLog<UserEvent>;
  readonly #waiting: StatementSync;

  constructor(reads: DatabaseSync, writes: WriteQueue) {
    this.#writes = writes;
    this.#stored = new SqliteEventLog({
      reads,
      writes,
      tables: USER_TABLES,
      columns: `type, json_object('id', user_id, 'name', name, 'email', email) AS json`,
      prune: 'pruneEvents',
      eventOf: (row) => row as unknown as UserEvent,
    });
    this.#waiting = reads.prepare('SELECT 1 FROM user_feed WHERE last < (SELECT max(id) FROM users) - ?');
  }

  async newest(): Promise<EventPosition> {
    while (this.#areWaiting()) await this.#addCreates();
    return this.#stored.newest();
  }

  async read(after: EventPosition, limit: number, size: number): Promise<EventPage<UserEvent> | undefined> {
    const found = this.#stored.read(after, limit, size);
    if (found === undefined || found.more || !this.#areWaiting()) return found;
    await this.#addCreates();
    return this.#stored.read(after, limit, size);
  }

  async prune(maxEvents: number, before: number, limit: number): Promise<boolean> {
    const isLong = this.#areWaiting(Math.min(MAX_WAITING, maxEvents));
    if (isLong) {
      await this.#writes.submit([
        { statement: 'skipCreates', values: [maxEvents, before] },
        { statement: 'startEvents', values: [Date.now()] },
        { statement: 'forgetEvents', values: [] },
      ]);
      await this.#addCreates();
    }
    return (await this.#stored.prune(maxEvents, before, limit)) || isLong;
  }

  /** Whether more than `count` creates have no event yet. */
  #areWaiting(count = 0): boolean {
    return readRow(this.#waiting, count) !== undefined;
  }

  async #addCreates(): Promise<void> {
    await this.#writes.submit([
      { statement: 'addCreates', values: [] },
      { statement: 'noteCreates', values: [] },
    ]);
  }
}
