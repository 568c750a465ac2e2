import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { addInboxMetrics, backlogCheck } from '../../src/inbox/health.ts';
import { openDatabase } from '../../src/sql/open.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import { engines } from '../support/databases.ts';
import { startDispatcher } from '../support/dispatch.ts';
import { newDelivery } from '../support/new-delivery.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const HOUR = 3_600_000;
const SOON = { timeout: 300_000 };
const wall = Date.now;

/** Sets the clock of this process `ahead`, in milliseconds. */
function setClock(t: TestContext, ahead: number): void {
  t.mock.restoreAll();
  t.mock.method(Date, 'now', () => wall() + ahead);
}

for (const [engine, open] of Object.entries(engines)) {
  describe(`clocks and ${engine}`, () => {
    test('a clock that is set forwards and back holds up no delivery', SOON, async (t) => {
      await using database = await open();
      const { inbox } = database.current;
      let failed = false;
      setClock(t, HOUR);
      await inbox.append(newDelivery({ receivedAt: Date.now() }));
      await using running = startDispatcher(inbox, () => {
        if (failed) return;
        failed = true;
        throw new Error('once');
      });
      await waitFor('the first attempt to fail', () => running.settled.length >= 1);
      setClock(t, -HOUR);
      await inbox.append(newDelivery({ receivedAt: Date.now() }));
      await waitFor('both to be done', () => running.settled.length === 3);
    });

    test('the difference of the clocks is measured', async (t) => {
      await using database = await open();
      const { inbox } = database.current;
      using metrics = new Metrics();
      addInboxMetrics(metrics, inbox);
      setClock(t, -HOUR);
      const read = () => {
        const [series] = [...(metrics.meter('webhook.clock.skew')?.series() ?? [])];
        const value = series?.measure()[0]?.value;
        return value !== undefined && !Number.isNaN(value) && { value };
      };
      const { value } = await waitFor('the gauge', read);
      assert.ok(Math.abs(value + HOUR / 1_000) < 60, String(value));
      const health = backlogCheck(inbox, { thresholdMs: 1_000 });
      const result = await health.check(AbortSignal.timeout(60_000));
      assert.match(JSON.stringify(result), /this process is 36\d\d s behind that of the database/);
    });
  });
}

if ('postgres' in engines) {
  test('a process whose clock is ahead ends no lease of another one early', async (t) => {
    await using database = await engines.postgres?.();
    const inbox = database?.current.inbox ?? assert.fail();
    await inbox.append(newDelivery());
    const [job] = await inbox.claim('t', 1, 'right', HOUR / 2);
    assert.ok(job);
    setClock(t, HOUR);
    assert.deepEqual(await inbox.due(['t']), []);
    assert.deepEqual(await inbox.claim('t', 1, 'ahead', HOUR), []);
    assert.deepEqual((await inbox.renew('right', [job.job], HOUR / 2)).renewed, [job.job]);
    assert.equal(await inbox.settle(job, 'right', { kind: 'retry', wait: 0, error: 'x' }), true);
    t.mock.restoreAll();
    assert.deepEqual(await inbox.due(['t']), ['t']);
  });
}

test('a restart, with a clock that is right again, keeps the times that jobs wait for', async (t) => {
  await using folder = await temporaryFolder();
  const url = `sqlite:${join(folder.path, 'test.db')}`;
  const runAt = wall() + 3 * HOUR;
  const planned = (target: string) =>
    newDelivery({ receivedAt: Date.now(), jobs: [{ target, orderKey: null, runAt }] });
  setClock(t, 2 * HOUR);
  const later = planned('t');
  const soon = newDelivery({ receivedAt: Date.now() });
  {
    await using database = await openDatabase(url, { forService: true });
    const { inbox } = database;
    for (const each of [later, soon]) await inbox.append(each);
    await inbox.recordHeartbeat(['t'], Date.now());
    setClock(t, HOUR);
    await inbox.append(planned('u'));
    assert.deepEqual(await inbox.due(['u'], runAt + HOUR / 2), [], 'its clock has not gone back');
    const [job] = await inbox.claim('t', 2, 'gone', HOUR);
    assert.equal(job?.delivery.id, soon.id);
  }
  t.mock.restoreAll();
  await using database = await openDatabase(url, { forService: true });
  const { inbox, deliveries } = database;
  assert.deepEqual(await inbox.due(['t', 'u']), ['t'], 'its lease has ended');
  const claimed = await inbox.claim('t', 2, 'new', 9 * HOUR, { now: runAt - 1 });
  assert.deepEqual(
    claimed.map(({ delivery: { id } }) => id),
    [soon.id],
  );
  assert.deepEqual(await inbox.due(['t', 'u'], runAt - 1), []);
  assert.deepEqual(await inbox.due(['t', 'u'], runAt), ['t', 'u']);
  assert.equal((await deliveries.find(later.id))?.plannedAt, runAt);
});

test('a service on an SQLite file waits for no lease and no time that lies too far ahead', async (t) => {
  await using folder = await temporaryFolder();
  const url = `sqlite:${join(folder.path, 'test.db')}`;
  setClock(t, HOUR);
  const ids = Array.from({ length: 3 }, () => newDelivery().id);
  {
    await using database = await openDatabase(url, { forService: true });
    const { inbox } = database;
    await inbox.recordHeartbeat(['t'], Date.now());
    for (const id of ids) await inbox.append(newDelivery({ id, receivedAt: Date.now() }));
    const [leased, failed] = await inbox.claim('t', 2, 'gone', 24 * HOUR);
    assert.ok(leased && failed);
    await inbox.settle(failed, 'gone', { kind: 'retry', wait: 500, error: 'x' });
  }
  t.mock.restoreAll();
  await using database = await openDatabase(url, { forService: true });
  const jobs = await waitFor('all to be due', async () => {
    const claimed = await database.inbox.claim('t', 3, 'new', 0);
    return claimed.length === 3 && claimed;
  });
  assert.deepEqual(jobs.map(({ delivery: { id } }) => id).toSorted(), ids.toSorted());
});
