import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { EventPosition, UserEvent, UserEventLog } from '../../relations/events.ts';
import type { WriteQueue } from '../sqlite-writer/write-queue.ts';
import { readRow, readRows } from './connection.ts';

/** Number of creates whose events are stored in one write. */
const BATCH = 1_000;

/** Maximum number of creates whose events are not stored yet; beyond it, retention stores or skips them. */
const MAX_WAITING = 10_000;

/** When a user was created; rows inserted manually have no version. */
const CREATED_AT = `iif(version > 0, version, CAST(unixepoch('subsec') * 1000 AS INTEGER))`;

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
  // Keeps at most $1 events, none from before $2; removes at most $3 at once. Events not relayed yet stay,
  // unless the relay has stopped.
  pruneEvents: `
    WITH oldest AS MATERIALIZED (SELECT seq, at FROM user_events ORDER BY seq LIMIT ?3 + 0),
    newest AS MATERIALIZED (SELECT max(seq) AS seq FROM user_events)
    DELETE FROM user_events
    WHERE seq <= (SELECT max(seq) FROM oldest)
      AND seq < (SELECT seq FROM newest)
      AND seq <= max(
        (SELECT seq FROM newest) - ?1,
        coalesce((SELECT max(seq) FROM oldest WHERE at < ?2), 0))
      AND seq < coalesce((SELECT position FROM user_relay WHERE moved_at >= ?2), seq + 1)`,
} as const;

/**
 * The events of users in an SQLite file. One thread writes them, so their numbers follow the order of
 * commits. The events of creates are stored later, when users are read as events or changed.
 */
export class SqliteUserEventLog implements UserEventLog {
  readonly #writes: WriteQueue;
  readonly #newest: StatementSync;
  readonly #read: StatementSync;
  readonly #waiting: StatementSync;

  constructor(reads: DatabaseSync, writes: WriteQueue) {
    this.#writes = writes;
    this.#newest = reads.prepare('SELECT seq AS position, at FROM user_events ORDER BY seq DESC LIMIT 1');
    this.#read = reads.prepare(`
      SELECT seq AS position, at, type, json_object('id', user_id, 'name', name, 'email', email) AS json
      FROM user_events WHERE seq >= ? ORDER BY seq LIMIT ? + 0`);
    this.#waiting = reads.prepare('SELECT 1 FROM user_feed WHERE last < (SELECT max(id) FROM users) - ?');
  }

  async newest(): Promise<EventPosition> {
    while (this.#areWaiting()) await this.#addCreates();
    return readRow<EventPosition>(this.#newest) ?? { position: 0, at: 0 };
  }

  async read(after: EventPosition, limit: number): Promise<readonly UserEvent[] | undefined> {
    const found = this.#events(after, limit);
    if (found === undefined || found.length === limit || !this.#areWaiting()) return found;
    await this.#addCreates();
    return this.#events(after, limit);
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
    const rows = await this.#writes.write('pruneEvents', maxEvents, before, limit);
    return rows.length > 0 || isLong;
  }

  #events({ position, at }: EventPosition, limit: number): readonly UserEvent[] | undefined {
    const [known, ...events] = readRows<UserEvent>(this.#read, position, limit + 1);
    return known?.position === position && known.at === at ? events : undefined;
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
