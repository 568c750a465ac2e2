import assert from 'node:assert/strict';
import { randomUUIDv7 } from 'node:crypto';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { StoreUnavailableError } from '../../src/core/errors.ts';
import { Dispatcher } from '../../src/inbox/dispatch/dispatcher.ts';
import type { Database } from '../../src/sql/database.ts';
import { openDatabase } from '../../src/sql/open.ts';
import { withoutPostgres } from '../support/databases.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { proofCount } from '../support/proof-settings.ts';
import { waitFor } from '../support/wait-for.ts';

// PORTICO_PROOF_PG_RESTARTS: how often the server crashes; more of it finds what is rare.
const RESTARTS = proofCount('PORTICO_PROOF_PG_RESTARTS', 3);
/** Clients of each kind. */
const CLIENTS = 8;
/** From the server's return to the first write that succeeds, in milliseconds: mostly, and on a busy machine at worst. */
const RECOVERY = 2_000;
const LONGEST_RECOVERY = 8_000;

/** What a client knows of the writes it made. */
class Ledger {
  readonly users = new Map<number, string>();
  readonly deliveries = new Set<string>();
  /** Writes of which nobody knows what became of them, and those that are known not to be stored. */
  readonly unknown = new Set<string>();
  readonly refused = new Set<string>();

  failed(name: string, error: unknown): void {
    assert.ok(error instanceof StoreUnavailableError, String(error));
    (/outcome is unknown/.test(error.message) ? this.unknown : this.refused).add(name);
  }
}

/** Writes without pause until it is told to stop. */
async function load(database: Database, ledger: Ledger, signal: AbortSignal): Promise<void> {
  const createUsers = async () => {
    while (!signal.aborted) {
      const name = randomUUIDv7();
      try {
        ledger.users.set(await database.users.create({ name, email: 'a@b' }), name);
      } catch (error) {
        ledger.failed(name, error);
        await delay(5);
      }
    }
  };
  const appendDeliveries = async () => {
    while (!signal.aborted) {
      const id = randomUUIDv7();
      const jobs = [{ target: 't', orderKey: null }];
      const delivery = {
        id,
        source: '',
        event: 'e',
        dataPointer: '',
        contentType: null,
        dedupKey: null,
        jobs,
      };
      try {
        await database.inbox.append({ ...delivery, body: Buffer.from(id), receivedAt: Date.now() });
        ledger.deliveries.add(id);
      } catch (error) {
        ledger.failed(id, error);
        await delay(5);
      }
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, () => [createUsers(), appendDeliveries()]).flat());
}

async function allUsers({ users }: Database): Promise<ReadonlyMap<number, string>> {
  const found = new Map<number, string>();
  for (let after = 0; ; ) {
    const page = await users.page('json', after, Number.MAX_SAFE_INTEGER);
    for (const { id, name } of JSON.parse(`[${page.bytes.subarray(1)}]`)) found.set(id, name);
    if (page.count === 0) return found;
    after = page.lastId;
  }
}

/** Crashes the server and starts it again; resolves to how long the writes took to come back. */
async function crash(server: PostgresServer, database: Database): Promise<number> {
  await server.stop('immediate');
  await delay(Math.random() * 300);
  await server.start();
  const back = performance.now();
  await waitFor('a write to come through', () =>
    database.users.create({ name: 'back', email: 'a@b' }).then(
      () => true,
      () => false,
    ),
  );
  return performance.now() - back;
}

test(`nothing acknowledged is lost through ${RESTARTS} crashes of the server, and service comes back by itself`, {
  skip: withoutPostgres ?? false,
  timeout: 300_000 + RESTARTS * 60_000,
}, async (t) => {
  await using server = await startPostgres({ sync: true });
  await using database = await openDatabase(await server.createDatabase());
  const ledger = new Ledger();
  const handled = new Map<string, number>();
  let lost = 0;
  const dispatcher = new Dispatcher({
    inbox: database.inbox,
    targets: [
      {
        name: 't',
        run: ({ delivery: { id, body } }) => {
          assert.equal(Buffer.from(body).toString(), id);
          handled.set(id, (handled.get(id) ?? 0) + 1);
        },
        concurrency: 32,
        timeout: 5_000,
        maxAttempts: 10,
        backoff: { base: 1, cap: 10 },
      },
    ],
    lease: 2_000,
    events: { settled() {}, leaseLost: () => lost++, overdue() {}, storeFailed() {} },
  });
  dispatcher.start();
  const stop = new AbortController();
  const working = load(database, ledger, stop.signal);
  const recoveries: number[] = [];
  for (let i = 0; i < RESTARTS; i++) {
    await delay(200 + Math.random() * 300);
    recoveries.push(await crash(server, database));
  }
  await delay(200);
  stop.abort();
  await working;
  const { users, deliveries, unknown, refused } = ledger;
  await waitFor('all jobs to be done', async () => (await database.inbox.backlog()).open === 0);
  await dispatcher.stop(AbortSignal.timeout(60_000));
  const repeated = [...handled.values()].filter((times) => times > 1).length;
  t.diagnostic(
    `${users.size} users and ${deliveries.size} deliveries acknowledged, ${unknown.size} unknown, ${refused.size} refused; ` +
      `writes came back ${recoveries.map((took) => took.toFixed(0)).join(', ')} ms after the server; ` +
      `${repeated} deliveries handled again, ${lost} leases lost`,
  );
  const stored = await allUsers(database);
  for (const [id, name] of users) assert.equal(stored.get(id), name, 'a user was acknowledged and is lost');
  const names = [...stored.values()].filter((name) => name !== 'back');
  assert.equal(new Set(names).size, names.length, 'a user is stored twice');
  for (const name of names) assert.ok(!refused.has(name), 'a write that was refused is stored');
  for (const id of deliveries) assert.ok(handled.has(id), 'a delivery was acknowledged and never handled');
  for (const id of handled.keys()) assert.ok(!refused.has(id), 'a delivery that was refused is handled');
  const sorted = recoveries.toSorted((x, y) => x - y);
  assert.ok(
    (sorted[sorted.length >> 1] ?? Infinity) < RECOVERY && (sorted.at(-1) ?? Infinity) < LONGEST_RECOVERY,
    `writes came back after ${recoveries} ms`,
  );
  assert.ok(users.size > 0 && deliveries.size > 0 && unknown.size + refused.size > 0, 'there was load');
});
