import { StoreUnavailableError } from '../../core/errors.ts';
import type { ChangeEvent, EventLog, EventPage, EventPosition, UserEvent } from '../../relations/events.ts';
import type { Row, Steps } from '../postgres-pool/connection.ts';
import { type Server, writeFailure } from '../postgres-pool/server.ts';

/** Maximum number of events that get their positions in one transaction. */
const BATCH = 2_000;

/** Where a log of events is, as the names of tables. */
interface EventTables {
  readonly events: string;
  /** One row with the last position, locked to number or remove events. */
  readonly feed: string;
  /** The place of the relay. */
  readonly relay: string;
}

interface EventLogOptions<E extends ChangeEvent> extends EventTables {
  /** The columns of an event besides its number and position. */
  readonly stored: string;
  /** The expressions that read an event besides its position and time. */
  readonly columns: string;
  /** The size of an event in bytes, if a few may be large. */
  readonly size?: string;
  eventOf(position: EventPosition, columns: Row): E;
}

/** The statements of a log; connections prepare them under names that begin with that of its table. */
function statementsOf({
  events,
  feed,
  relay,
  stored,
  columns,
  size,
}: EventTables & Pick<EventLogOptions<never>, 'stored' | 'columns' | 'size'>) {
  const named = (name: string, text: string) => ({ name: `${events}-${name}`, text });
  const areWaiting = `EXISTS (SELECT FROM ${events} WHERE position IS NULL)`;
  const next = `${events} WHERE position >= $1 ORDER BY position LIMIT $2`;
  // The last position that may be removed while the relay is active (it has moved since $2): its place and
  // later events stay.
  const relayed = `SELECT position - 1 FROM ${relay} WHERE moved_at >= $2`;
  return {
    newest: named(
      'newest',
      `SELECT position, at, ${areWaiting} FROM ${events} WHERE position IS NOT NULL ORDER BY position DESC LIMIT 1`,
    ),
    read: named(
      'read',
      size === undefined
        ? `SELECT position, at, ${areWaiting}, 0, ${columns} FROM ${next}`
        : `
      SELECT position, at, ${areWaiting}, n, ${columns} FROM (
        SELECT *, count(*) OVER () AS n,
          sum(${size}) OVER (ORDER BY position ROWS UNBOUNDED PRECEDING) - ${size} AS before
        FROM (SELECT * FROM ${next}) AS next) AS sized
      WHERE position <= $1 OR before - (SELECT ${size} FROM ${events} WHERE position = $1) < $3::bigint
      ORDER BY position`,
    ),
    lock: named('lock', `SELECT last FROM ${feed} FOR UPDATE`),
    // Must follow the lock, so that it sees all changes made under it. Moves the rows instead of updating them by a
    // join, which with old statistics compares each with all that wait.
    place: named(
      'place',
      `
      WITH first AS (SELECT seq FROM ${events} WHERE position IS NULL ORDER BY seq LIMIT ${BATCH}),
      waiting AS (
        DELETE FROM ${events} WHERE position IS NULL AND seq <= (SELECT max(seq) FROM first) RETURNING seq, ${stored}),
      placed AS (
        INSERT INTO ${events} (seq, position, ${stored}) OVERRIDING SYSTEM VALUE
        SELECT seq, (SELECT last FROM ${feed}) + row_number() OVER (ORDER BY seq), ${stored} FROM waiting)
      UPDATE ${feed} SET last = last + n FROM (SELECT count(*) AS n FROM waiting) AS all_placed WHERE n > 0 RETURNING n`,
    ),
    // Removes the oldest events with a position, so that at most $1 stay, counting those without one, and none
    // from before $2.
    prunePlaced: named(
      'prune',
      `
      WITH waiting AS (SELECT coalesce(max(seq) - min(seq) + 1, 0) AS n FROM ${events} WHERE position IS NULL),
      oldest AS (SELECT position, at FROM ${events} WHERE position IS NOT NULL ORDER BY position LIMIT $3),
      bound AS (
        SELECT last, n, least(
          (SELECT max(position) FROM oldest),
          greatest(last - greatest($1::bigint - n, 0), (SELECT max(position) FROM oldest WHERE at < $2))) AS up_to
        FROM ${feed}, waiting)
      DELETE FROM ${events} USING bound
      WHERE position <= least(up_to, (${relayed})) AND (position < last OR n > 0) RETURNING 1`,
    ),
    // The same for events without a position, once there are no others.
    pruneWaiting: named(
      'prune-waiting',
      `
      WITH oldest AS (SELECT seq, at FROM ${events} WHERE position IS NULL ORDER BY seq LIMIT $3),
      newest AS (SELECT max(seq) AS seq FROM ${events} WHERE position IS NULL)
      DELETE FROM ${events} USING newest
      WHERE position IS NULL AND ${events}.seq < newest.seq
        AND ${events}.seq <= (SELECT max(seq) FROM oldest)
        AND ${events}.seq <= greatest(newest.seq - $1::bigint, (SELECT max(seq) FROM oldest WHERE at < $2))
        AND NOT EXISTS (SELECT FROM ${events} WHERE position IS NOT NULL) AND NOT EXISTS (${relayed}) RETURNING 1`,
    ),
  };
}

/**
 * The events of a table in a PostgreSQL database. Readers number events as they become visible, so a late
 * commit gets a late position regardless of its `seq`, and no event ever appears before a position already
 * read.
 */
export class PostgresEventLog<E extends ChangeEvent> implements EventLog<E> {
  readonly #server: Server;
  readonly #statements: ReturnType<typeof statementsOf>;
  readonly #eventOf: EventLogOptions<E>['eventOf'];
  readonly #isSized: boolean;

  constructor(server: Server, options: EventLogOptions<E>) {
    this.#server = server;
    this.#statements = statementsOf(options);
    this.#eventOf = options.eventOf;
    this.#isSized = options.size !== undefined;
  }

  async newest(): Promise<EventPosition> {
    let [row] = await this.#server.read(this.#statements.newest, []);
    if (row?.[2] !== false) {
      while ((await this.#place()) === BATCH);
      [row] = await this.#server.read(this.#statements.newest, []);
    }
    if (row === undefined) throw new StoreUnavailableError('The database has no event to start from');
    return positionOf(row);
  }

  async read(after: EventPosition, limit: number, size: number): Promise<EventPage<E> | undefined> {
    const values = [after.position, limit + 1, ...(this.#isSized ? [size] : [])];
    let [known, ...rows] = await this.#server.read(this.#statements.read, values);
    const isMore = () => rows.length === limit || Number(known?.[3]) > rows.length + 1;
    if (known?.[2] === true && !isMore()) {
      await this.#place();
      [known, ...rows] = await this.#server.read(this.#statements.read, values);
    }
    if (known === undefined) return undefined;
    const { position, at } = positionOf(known);
    if (position !== after.position || at !== after.at) return undefined;
    return { events: rows.map((row) => this.#eventOf(positionOf(row), row.slice(4))), more: isMore() };
  }

  async prune(maxEvents: number, before: number, limit: number): Promise<boolean> {
    const values = [maxEvents, before, limit];
    const [, placed = [], waiting = []] = await this.#transaction([
      [this.#statements.lock, []],
      [this.#statements.prunePlaced, values],
      [this.#statements.pruneWaiting, values],
    ]);
    return placed.length + waiting.length > 0;
  }

  /** Numbers events that have no position; resolves to their count. */
  async #place(): Promise<number> {
    const [, [row] = []] = await this.#transaction([
      [this.#statements.lock, []],
      [this.#statements.place, []],
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

/** The events of users. */
export function userEventLog(server: Server): EventLog<UserEvent> {
  return new PostgresEventLog(server, {
    events: 'user_events',
    feed: 'user_feed',
    relay: 'user_relay',
    stored: 'type, at, user_id, name, email',
    columns: `type,
      '{"id":' || user_id || ',"name":' || to_json(name)::text || ',"email":' || to_json(email)::text || '}'`,
    eventOf: (position, [type, json]) => ({
      ...position,
      type: type as UserEvent['type'],
      json: String(json),
    }),
  });
}
