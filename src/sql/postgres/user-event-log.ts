import { StoreUnavailableError } from '../../core/errors.ts';
import type { EventPosition, UserEvent, UserEventLog } from '../../relations/events.ts';
import type { Row, Steps } from '../postgres-pool/connection.ts';
import { type Server, writeFailure } from '../postgres-pool/server.ts';

/** Maximum number of events that get their positions in one transaction. */
const BATCH = 1_000;

const NEWEST = {
  name: 'user-events-newest',
  text: `
    SELECT position, at, EXISTS (SELECT FROM user_events WHERE position IS NULL)
    FROM user_events WHERE position IS NOT NULL ORDER BY position DESC LIMIT 1`,
};
const READ = {
  name: 'user-events',
  text: `
    SELECT position, at, type,
      '{"id":' || user_id || ',"name":' || to_json(name)::text || ',"email":' || to_json(email)::text || '}',
      EXISTS (SELECT FROM user_events WHERE position IS NULL)
    FROM user_events WHERE position >= $1 ORDER BY position LIMIT $2`,
};
const LOCK = { name: 'user-feed-lock', text: 'SELECT last FROM user_feed FOR UPDATE' };
/** Must follow the lock, so that it sees all changes made under it. */
const PLACE = {
  name: 'user-events-place',
  text: `
    WITH waiting AS (SELECT seq FROM user_events WHERE position IS NULL ORDER BY seq LIMIT ${BATCH}),
    placed AS (SELECT seq, (SELECT last FROM user_feed) + row_number() OVER (ORDER BY seq) AS position FROM waiting),
    stored AS (
      UPDATE user_events SET position = placed.position FROM placed
      WHERE user_events.seq = placed.seq AND user_events.position IS NULL)
    UPDATE user_feed SET last = last + n FROM (SELECT count(*) AS n FROM placed) AS all_placed WHERE n > 0 RETURNING n`,
};
/**
 * The last position that may be removed while the relay is active (it has moved since $2): its place and
 * later events stay.
 */
const RELAY = 'SELECT position - 1 FROM user_relay WHERE moved_at >= $2';
/**
 * Removes the oldest events with a position, so that at most $1 stay, counting those without one, and none
 * from before $2.
 */
const PRUNE_PLACED = {
  name: 'user-events-prune',
  text: `
    WITH waiting AS (SELECT coalesce(max(seq) - min(seq) + 1, 0) AS n FROM user_events WHERE position IS NULL),
    oldest AS (SELECT position, at FROM user_events WHERE position IS NOT NULL ORDER BY position LIMIT $3),
    bound AS (
      SELECT last, n, least(
        (SELECT max(position) FROM oldest),
        greatest(last - greatest($1::bigint - n, 0), (SELECT max(position) FROM oldest WHERE at < $2))) AS up_to
      FROM user_feed, waiting)
    DELETE FROM user_events USING bound
    WHERE position <= least(up_to, (${RELAY})) AND (position < last OR n > 0) RETURNING 1`,
};
/** The same for events without a position, once there are no others. */
const PRUNE_WAITING = {
  name: 'user-events-prune-waiting',
  text: `
    WITH oldest AS (SELECT seq, at FROM user_events WHERE position IS NULL ORDER BY seq LIMIT $3),
    newest AS (SELECT max(seq) AS seq FROM user_events WHERE position IS NULL)
    DELETE FROM user_events USING newest
    WHERE position IS NULL AND user_events.seq < newest.seq
      AND user_events.seq <= (SELECT max(seq) FROM oldest)
      AND user_events.seq <= greatest(newest.seq - $1::bigint, (SELECT max(seq) FROM oldest WHERE at < $2))
      AND NOT EXISTS (SELECT FROM user_events WHERE position IS NOT NULL) AND NOT EXISTS (${RELAY}) RETURNING 1`,
};

/**
 * The events of users in a PostgreSQL database. Readers number events as they become visible, so a late
 * commit gets a late position regardless of its `seq`, and no event ever appears before a position already
 * read.
 */
export class PostgresUserEventLog implements UserEventLog {
  readonly #server: Server;

  constructor(server: Server) {
    this.#server = server;
  }

  async newest(): Promise<EventPosition> {
    let [row] = await this.#server.read(NEWEST, []);
    if (row?.[2] !== false) {
      while ((await this.#place()) === BATCH);
      [row] = await this.#server.read(NEWEST, []);
    }
    if (row === undefined)
      throw new StoreUnavailableError('The database has no event of users to start from');
    return positionOf(row);
  }

  async read(after: EventPosition, limit: number): Promise<readonly UserEvent[] | undefined> {
    const values = [after.position, limit + 1];
    let [known, ...rows] = await this.#server.read(READ, values);
    if (known?.[4] === true && rows.length < limit) {
      await this.#place();
      [known, ...rows] = await this.#server.read(READ, values);
    }
    if (known === undefined) return undefined;
    const { position, at } = positionOf(known);
    return position === after.position && at === after.at ? rows.map(eventOf) : undefined;
  }

  async prune(maxEvents: number, before: number, limit: number): Promise<boolean> {
    const values = [maxEvents, before, limit];
    const [, placed = [], waiting = []] = await this.#transaction([
      [LOCK, []],
      [PRUNE_PLACED, values],
      [PRUNE_WAITING, values],
    ]);
    return placed.length + waiting.length > 0;
  }

  /** Numbers events that have no position; resolves to their count. */
  async #place(): Promise<number> {
    const [, [row] = []] = await this.#transaction([
      [LOCK, []],
      [PLACE, []],
    ]);
    return Number(row?.[0] ?? 0);
  }

  #transaction(steps: Steps): Promise<readonly (readonly Row[])[]> {
    return this.#server.transaction(steps).catch((error: unknown) => {
      throw writeFailure(error);
    });
  }
}

function positionOf([position, at]: Row): EventPosition {
  return { position: Number(position), at: Number(at) };
}

function eventOf(row: Row): UserEvent {
  return { ...positionOf(row), type: row[2] as UserEvent['type'], json: String(row[3]) };
}
