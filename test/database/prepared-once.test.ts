import assert from 'node:assert/strict';
import { constants, DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { openDatabase } from '../../src/sql/open.ts';
import { newDelivery } from '../support/new-delivery.ts';

/**
 * Opens a database in memory and tells how many statements SQLite has prepared since the last time it was asked: it asks an
 * authorizer whenever it prepares one.
 */
function openCounting(t: TestContext) {
  const seen = new Set<DatabaseSync>();
  let prepared = 0;
  const prepare = DatabaseSync.prototype.prepare;
  t.mock.method(
    DatabaseSync.prototype,
    'prepare',
    function (this: DatabaseSync, ...args: Parameters<typeof prepare>) {
      if (!seen.has(this)) {
        this.setAuthorizer(() => {
          prepared++;
          return constants.SQLITE_OK;
        });
      }
      seen.add(this);
      return prepare.apply(this, args);
    },
  );
  const database = openDatabase('sqlite::memory:', { userIndexes: { search: 'text', uniqueEmail: false } });
  return {
    database,
    /** The number of times that the authorizer was asked since the last call. */
    asked() {
      const count = prepared;
      prepared = 0;
      return count;
    },
  };
}

test('SQLite prepares no statement anew for other values', async (t) => {
  const { database, asked } = openCounting(t);
  await using opened = database;
  const { inbox, users, deliveries, audit, userEvents } = opened;
  const one = async (limit: number) => {
    for (let i = 0; i < limit; i++) {
      await inbox.append(newDelivery({ dedupKey: `${limit} ${i}` }));
      await users.create({ name: `n${limit} ${i}`, email: 'a@b' });
    }
    const jobs = await inbox.claim('t', limit, 'me', 5_000, { held: [limit] });
    assert.ok(jobs.length > 0);
    for (const job of jobs) await inbox.settle(job, 'me', { kind: 'retry', wait: limit, error: 'x' });
    await inbox.claim('t', limit, 'me', 5_000, { quarantined: true });
    await inbox.renew('me', [limit], 5_000);
    await inbox.expireOrphans(limit, limit, 'x', limit);
    await inbox.forgetKeys(limit, limit);
    await inbox.prune({ kind: 'ended', before: limit, remember: undefined });
    await deliveries.list({}, limit);
    await deliveries.resolve('0', limit);
    await audit.find({ limit });
    await users.page('json', 0, 100 + limit);
    const order = [{ field: 'name', descending: false }] as const;
    for (const search of ['', 'n2', 'n2 0']) {
      const filters = search === '' ? [] : [{ field: 'any', match: 'contains', text: search } as const];
      await users.lists.page({ filters, order, limit, fields: ['name'], next: undefined, backwards: false });
    }
    await userEvents.read({ position: 0, at: 0 }, limit, limit);
    await userEvents.prune(limit, limit, limit);
  };
  // Rare statements are prepared on first use.
  await one(2);
  await one(4);
  assert.ok(asked() > 0, 'the count works');
  await one(3);
  assert.equal(asked(), 0);
});
