import { userOfJson } from '../../users/database-user-store.ts';
import { LocalUserFeed } from '../../users/local-user-feed.ts';
import type { User } from '../../users/user.ts';
import type { UserFeed } from '../../users/user-feed.ts';
import { ArrivalCursor } from './arrival-cursor.ts';
import type { Server } from './pool/server.ts';
import { USER_JSON } from './user-statements.ts';

/** Maximum number of new users per poll; subscribers must have room for as many. */
const PAGE = 200;
/** Minimum time between two polls, however often it is notified, in milliseconds. */
const PAUSE = 20;
/** Time between two polls without a notification, in milliseconds. */
const INTERVAL = 1_000;
/** A feed that begins does not wait for missing ids further below the highest one than this. */
const BEHIND = 10_000;

const BEGIN = {
  name: 'user-feed-begin',
  text: `
    WITH bound AS MATERIALIZED (SELECT coalesce(max(id), 0) AS last FROM users),
    given AS (SELECT generate_series(greatest(1, last - ${BEHIND}), last) AS id FROM bound)
    SELECT last, ARRAY(SELECT id FROM given EXCEPT SELECT id FROM users WHERE id > last - ${BEHIND + 1} ORDER BY id)
    FROM bound`,
};
// The first column is the highest id that was assigned.
const POLL = {
  name: 'user-feed-poll',
  text: `
    SELECT (SELECT last_value FROM users_id_seq), id, json
    FROM (VALUES (1)) AS always
    LEFT JOIN (
      (SELECT id, ${USER_JSON} AS json FROM users WHERE id = ANY ($1::bigint[]))
      UNION ALL
      (SELECT id, ${USER_JSON} FROM users WHERE id > $2 ORDER BY id LIMIT ${PAGE})) AS arrived ON true
    ORDER BY id`,
};

/**
 * Publishes users that any process on the database creates. It polls for ids that are new since the last poll; the
 * creating process notifies the others, and a lost notification delays its users by a second. Without subscribers it
 * does not poll.
 */
export class PostgresUserFeed implements UserFeed, Disposable {
  readonly #server: Server;
  readonly #feed = new LocalUserFeed();
  /** Undefined while it does not poll. */
  #cursor: ArrivalCursor | undefined;
  /** Subscribers that wait for their first poll. */
  #joining = 0;
  #polledAt = Number.NEGATIVE_INFINITY;
  #polling: Promise<void> = Promise.resolve();
  /** The poll that begins when the current one has ended. */
  #next: Promise<void> | undefined;
  #soon: NodeJS.Timeout | undefined;
  #interval: NodeJS.Timeout | undefined;

  constructor(server: Server) {
    this.#server = server;
  }

  async subscribe(): Promise<AsyncIterableIterator<User>> {
    this.#joining++;
    try {
      // Users created before now go to earlier subscribers only.
      await this.#pollFromNow();
      this.#interval ??= setInterval(() => this.#tick(), INTERVAL).unref();
      return this.#feed.subscribe();
    } finally {
      this.#joining--;
    }
  }

  /** Called when there may be new users. */
  wake(): void {
    if (this.#cursor === undefined || this.#soon !== undefined) return;
    const wait = Math.max(0, this.#polledAt + PAUSE - performance.now());
    this.#soon = setTimeout(() => {
      this.#soon = undefined;
      this.#tick();
    }, wait);
  }

  [Symbol.dispose](): void {
    this.#stop();
  }

  #tick(): void {
    if (this.#feed.subscribers + this.#joining === 0) this.#stop();
    // The next poll makes up for one that fails.
    else this.#pollFromNow().catch(() => {});
  }

  #stop(): void {
    this.#cursor = undefined;
    clearTimeout(this.#soon);
    clearInterval(this.#interval);
    this.#soon = undefined;
    this.#interval = undefined;
  }

  /** A poll that begins after this call; all calls until it begins share it. */
  #pollFromNow(): Promise<void> {
    this.#next ??= this.#polling
      .catch(() => {})
      .then(() => {
        this.#next = undefined;
        this.#polling = this.#poll();
        return this.#polling;
      });
    return this.#next;
  }

  async #poll(): Promise<void> {
    for (;;) {
      const cursor = this.#cursor;
      const began = performance.now();
      this.#polledAt = began;
      if (cursor === undefined) {
        const [row] = await this.#server.read(BEGIN, []);
        const [last = 0, missing = []] = (row ?? []) as [number?, (readonly string[])?];
        this.#cursor = new ArrivalCursor(last, missing.map(Number), performance.now());
        return;
      }
      const rows = await this.#server.read(POLL, [cursor.missing, cursor.last]);
      if (Number(rows[0]?.[0]) < cursor.last) {
        // The database was replaced, by an older backup for example: ids are assigned again.
        this.#cursor = undefined;
        continue;
      }
      const arrived = rows.filter(([, id]) => id !== null);
      const last = cursor.last;
      const fresh = cursor.advance(
        arrived.map(([, id]) => Number(id)),
        began,
        performance.now(),
      );
      for (const [, id, json] of arrived) {
        if (fresh.has(Number(id))) this.#feed.publish(userOfJson(String(json)));
      }
      if (arrived.filter(([, id]) => Number(id) > last).length < PAGE) return;
    }
  }
}
