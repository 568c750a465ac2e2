import type { NewUser, User } from '../../users/user.ts';
import { UserFeed } from '../../users/user-feed.ts';
import type { UserSource } from '../../users/user-source.ts';
import { ArrivalCursor } from './arrival-cursor.ts';
import type { Server } from './pool/server.ts';
import { USER_JSON } from './users.ts';

/** Users that are told in one go; whoever reads them must have room for as many. */
const PAGE = 200;
/** From one look to the next, however often there is news, in milliseconds. */
const PAUSE = 20;
/** Without news it looks this often, in milliseconds. */
const INTERVAL = 1_000;
/** An id further below the highest one is not waited for by a follower that begins. */
const BEHIND = 10_000;

const BEGIN = {
  name: 'user-arrivals-begin',
  text: `
    WITH bound AS MATERIALIZED (SELECT coalesce(max(id), 0) AS last FROM users),
    given AS (SELECT generate_series(greatest(1, last - ${BEHIND}), last) AS id FROM bound)
    SELECT last, ARRAY(SELECT id FROM given EXCEPT SELECT id FROM users WHERE id > last - ${BEHIND + 1} ORDER BY id)
    FROM bound`,
};
// In its first column: the highest id that was given.
const LOOK = {
  name: 'user-arrivals',
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
 * Tells of users that any process on the database creates, by looking at what has come since the last look. Whoever
 * creates rings a bell; a ring that is lost costs a second. It looks at nothing while nobody subscribes.
 */
export class UserFollower implements UserSource, Disposable {
  readonly #server: Server;
  readonly #feed = new UserFeed();
  /** Undefined while it follows nothing. */
  #cursor: ArrivalCursor | undefined;
  #joining = 0;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #looking: Promise<void> = Promise.resolve();
  /** The look that begins when the one under way has ended. */
  #next: Promise<void> | undefined;
  #soon: NodeJS.Timeout | undefined;
  #interval: NodeJS.Timeout | undefined;

  constructor(server: Server) {
    this.#server = server;
  }

  async subscribe(): Promise<AsyncIterableIterator<User>> {
    this.#joining++;
    try {
      // What was created up to now is for those who were there.
      await this.#lookFromNow();
      this.#interval ??= setInterval(() => this.#tick(), INTERVAL).unref();
      return this.#feed.subscribe();
    } finally {
      this.#joining--;
    }
  }

  /** Says that there may be new users. */
  wake(): void {
    if (this.#cursor === undefined || this.#soon !== undefined) return;
    const wait = Math.max(0, this.#lookedAt + PAUSE - performance.now());
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
    // What fails now the next look makes up for.
    else this.#lookFromNow().catch(() => {});
  }

  #stop(): void {
    this.#cursor = undefined;
    clearTimeout(this.#soon);
    clearInterval(this.#interval);
    this.#soon = undefined;
    this.#interval = undefined;
  }

  /** A look that begins after this call; calls that come before it begins share it. */
  #lookFromNow(): Promise<void> {
    this.#next ??= this.#looking
      .catch(() => {})
      .then(() => {
        this.#next = undefined;
        this.#looking = this.#look();
        return this.#looking;
      });
    return this.#next;
  }

  async #look(): Promise<void> {
    for (;;) {
      const cursor = this.#cursor;
      const began = performance.now();
      this.#lookedAt = began;
      if (cursor === undefined) {
        const [row] = await this.#server.read(BEGIN, []);
        const [last = 0, missing = []] = (row ?? []) as [number?, (readonly string[])?];
        this.#cursor = new ArrivalCursor(last, missing.map(Number), performance.now());
        return;
      }
      const rows = await this.#server.read(LOOK, [cursor.missing, cursor.last]);
      if (Number(rows[0]?.[0]) < cursor.last) {
        // The database is another one, or an older one of a backup: its ids are given again.
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
      for (const [, id, json] of arrived) if (fresh.has(Number(id))) this.#publish(String(json));
      if (arrived.filter(([, id]) => Number(id) > last).length < PAGE) return;
    }
  }

  #publish(json: string): void {
    const { id, name, email } = JSON.parse(json) as NewUser & { readonly id: number };
    this.#feed.publish({ id: String(id), name, email });
  }
}
