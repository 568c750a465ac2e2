import { isDeepStrictEqual } from 'node:util';
import pg from 'pg';
import type { ClaimedJob, NewDelivery } from '../../src/inbox/delivery.ts';
import type { Database } from '../../src/sql/database.ts';
import { openDatabase } from '../../src/sql/open.ts';
import { newDelivery } from './new-delivery.ts';
import { waitFor } from './wait-for.ts';

const HOUR = 60 * 60 * 1_000;

/** A database whose new bodies go to slots, with what tests do to them. */
export interface SlotDatabase extends AsyncDisposable {
  readonly url: string;
  readonly database: Database;
  /** A client that does not know of slots. */
  readonly client: pg.Client;
  /** Stores deliveries; a body says what is expected of it. */
  store(...changes: readonly Partial<NewDelivery>[]): Promise<readonly NewDelivery[]>;
  claim(limit: number): Promise<readonly ClaimedJob[]>;
  /** Ends jobs, as handled or dead, later than all before, and removes what is handled. */
  end(jobs: readonly ClaimedJob[], kind?: 'done' | 'dead'): Promise<void>;
  /** Closes the slot that is open, opens another one, and takes all steps of emptying. */
  rotate(): Promise<void>;
  /** Takes steps of emptying until the slots have so many bodies: a busy machine may take too long for one. */
  emptied(filled: readonly number[]): Promise<void>;
  /** The slot of each delivery, by its id. */
  slots(): Promise<ReadonlyMap<string, number | null>>;
  /** The numbers of bodies in the slots that have some. */
  filled(): Promise<readonly number[]>;
}

export const bodyFor = (id: string) => Buffer.from(JSON.stringify({ event: 'e', data: id.repeat(20) }));

/** Opens a database, with an open slot. */
export async function openSlots(url: string): Promise<SlotDatabase> {
  const database = await openDatabase(url, { partitions: true });
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  let later = Date.now() + HOUR;
  const rotate = async () => {
    for (let age = 0; ; age = HOUR) {
      if ((await database.inbox.prune({ kind: 'bodies', age, bytes: null })).isLast) return;
    }
  };
  const filled = async () => {
    const { rows } = await client.query(
      'SELECT count(*)::int AS n FROM delivery_bodies GROUP BY slot ORDER BY slot',
    );
    return rows.map(({ n }) => n as number);
  };
  await rotate();
  return {
    url,
    database,
    client,
    rotate,
    async store(...changes) {
      const deliveries = changes.map((each) => {
        const delivery = newDelivery({ receivedAt: Date.now(), ...each });
        return { ...delivery, body: each.body ?? bodyFor(delivery.id) };
      });
      for (const delivery of deliveries) await database.inbox.append(delivery);
      return deliveries;
    },
    claim: (limit) => database.inbox.claim('t', limit, 'owner', HOUR),
    async end(jobs, kind = 'done') {
      later += 1_000;
      const outcome = kind === 'done' ? ({ kind } as const) : ({ kind, error: 'e' } as const);
      for (const job of jobs) await database.inbox.settle(job, 'owner', outcome, later);
      const rule = { kind: 'excess', before: later + 1, maxBytes: 0 } as const;
      while (!(await database.inbox.prune(rule)).isLast);
    },
    async slots() {
      const { rows } = await client.query('SELECT id, slot FROM deliveries');
      return new Map(rows.map(({ id, slot }) => [id, slot]));
    },
    filled,
    async emptied(expected) {
      await waitFor(`bodies in slots: ${expected}`, async () => {
        await database.inbox.prune({ kind: 'bodies', age: HOUR, bytes: null });
        return isDeepStrictEqual(await filled(), expected);
      });
    },
    async [Symbol.asyncDispose]() {
      await client.end();
      await database[Symbol.asyncDispose]();
    },
  };
}

/** The deliveries whose body is not the one that was stored. */
export async function wrongBodies(
  database: Database,
  ids: Iterable<string>,
): Promise<readonly (readonly [string, string | undefined])[]> {
  const wrong: [string, string | undefined][] = [];
  for (const id of ids) {
    const body = (await database.deliveries.find(id))?.body;
    if (body === undefined || !bodyFor(id).equals(body))
      wrong.push([id, body && Buffer.from(body).toString()]);
  }
  return wrong;
}
