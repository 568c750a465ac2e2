import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Checkpoints } from '../../src/inbox/inbox.ts';
import type { DeliverySummary } from '../../src/inbox/operations.ts';
import { readSchedules, Scheduler } from '../../src/inbox/schedules.ts';
import type { Database } from '../../src/sql/database.ts';
import { engines } from '../support/databases.ts';

/** A clock of the test's own; each process has a scheduler. */
function group({ inbox, deliveries }: Database, config: unknown, start: string) {
  let now = Date.parse(start);
  const missed: string[] = [];
  const checkpoints: Checkpoints = { ...inbox.checkpoints, clock: () => now };
  const process = (given: unknown = config) => {
    const problems: string[] = [];
    const schedules = readSchedules(given, 'schedules', problems);
    assert.deepEqual(problems, []);
    return new Scheduler({
      inbox: { checkpoints },
      schedules,
      plan: (event) => [{ target: `handler:${event}`, orderKey: null }],
      onAppended() {},
      onMissed: (name, planned) => missed.push(`${name}@${new Date(planned).toISOString()}`),
      onError: assert.fail,
    });
  };
  return {
    process,
    missed,
    set(moment: string) {
      now = Date.parse(moment);
    },
    /** Lets a process run every so many minutes to a moment. */
    async runTo(scheduler: Scheduler, moment: string, minutes = 5) {
      for (const end = Date.parse(moment); now < end; ) {
        now = Math.min(end, now + minutes * 60_000);
        await scheduler.run();
      }
    },
    async planned(): Promise<readonly unknown[]> {
      const { items } = await deliveries.list({ source: 'portico:schedule' }, 100);
      const read = async ({ id }: DeliverySummary) => {
        const found = await deliveries.find(id);
        return JSON.parse(Buffer.from(found?.body ?? []).toString()).data.plannedAt;
      };
      return (await Promise.all(items.map(read))).reverse();
    },
  };
}

for (const [engine, open] of Object.entries(engines)) {
  describe(`schedules in ${engine}`, () => {
    test('a new one begins with its next time, and a group of replicas stores each delivery once', async () => {
      await using database = await open();
      const { current } = database;
      const all = group(current, { nightly: '0 3 * * *' }, '2026-05-01T03:30:00Z');
      const replicas = Array.from({ length: 5 }, () => all.process());
      const run = () => Promise.all(replicas.map((each) => each.run()));
      await run();
      assert.deepEqual(await all.planned(), []);
      all.set('2026-05-02T02:59:59.999Z');
      assert.deepEqual(await run(), Array(5).fill(1));
      for (const moment of ['2026-05-02T03:00:00Z', '2026-05-02T03:00:01Z']) {
        all.set(moment);
        await run();
      }
      assert.deepEqual(await all.planned(), ['2026-05-02T03:00:00.000Z']);
      const [stored] = (await current.deliveries.list({}, 9)).items;
      assert.equal(stored?.event, 'nightly');
      assert.equal((await current.inbox.backlog()).open, 1, 'it has a job');
      assert.deepEqual(await current.deliveries.resolve('nightly@2026-05-02T03:00:00.000Z', 2), [stored?.id]);
    });

    test('after a time without a process the last missed one is made up for within the grace', async () => {
      await using database = await open();
      const config = {
        hourly: '0 * * * *',
        nightly: { cron: '0 3 * * *', grace: 120_000, event: 'e', data: { a: 1 } },
      };
      const all = group(database.current, config, '2026-05-01T12:00:30Z');
      await all.process().run();
      all.set('2026-05-03T06:10:00Z');
      await all.process().run();
      assert.deepEqual(await all.planned(), ['2026-05-03T06:00:00.000Z']);
      assert.deepEqual(all.missed, ['nightly@2026-05-03T03:00:00.000Z']);
      await all.process().run();
      assert.equal(all.missed.length, 1, 'told once');
      all.set('2026-05-04T03:01:00Z');
      await all.process().run();
      const [nightly] = (await database.current.deliveries.list({ event: 'e' }, 9)).items;
      const body = (await database.current.deliveries.find(nightly?.id ?? ''))?.body ?? [];
      assert.deepEqual(JSON.parse(Buffer.from(body).toString()).data, {
        a: 1,
        schedule: 'nightly',
        plannedAt: '2026-05-04T03:00:00.000Z',
      });
    });

    test('a clock that was set forwards or back repeats nothing and stops nothing', async () => {
      await using database = await open();
      const all = group(database.current, { job: '0 3 * * *' }, '2026-05-01T12:00:00Z');
      const one = all.process();
      await one.run();
      await all.runTo(one, '2026-05-02T03:10:00Z', 60);
      // An hour back, and past the same time again.
      all.set('2026-05-02T02:10:00Z');
      await one.run();
      await all.runTo(one, '2026-05-02T04:00:00Z');
      assert.deepEqual(await all.planned(), ['2026-05-02T03:00:00.000Z']);
      // A year forwards by mistake, and back.
      all.set('2027-05-02T03:00:10Z');
      await one.run();
      all.set('2026-05-02T05:00:00Z');
      await one.run();
      await all.runTo(one, '2026-05-03T03:30:00Z', 60);
      assert.deepEqual((await all.planned()).toSorted(), [
        '2026-05-02T03:00:00.000Z',
        '2026-05-03T03:00:00.000Z',
        '2027-05-02T03:00:00.000Z',
      ]);
    });

    test('at both changes of daylight saving time once a day, in the zone of the schedule', async () => {
      await using database = await open();
      const schedule = { cron: '30 2 * * *', timezone: 'Europe/Berlin' };
      const all = group(database.current, { job: schedule }, '2026-03-28T12:00:00Z');
      const one = all.process();
      await one.run();
      await all.runTo(one, '2026-03-30T12:00:00Z', 15);
      // 02:30 does not exist on the 29th: at 03:00.
      const spring = ['2026-03-29T01:00:00.000Z', '2026-03-30T00:30:00.000Z'];
      assert.deepEqual(await all.planned(), spring);
      all.set('2026-10-24T12:00:00Z');
      await one.run();
      await all.runTo(one, '2026-10-26T12:00:00Z', 15);
      // 02:30 comes twice on the 25th: the first one counts.
      const autumn = ['2026-10-25T00:30:00.000Z', '2026-10-26T01:30:00.000Z'];
      assert.deepEqual((await all.planned()).slice(-2), autumn);
      assert.equal((await all.planned()).length, 4);
    });

    test('another timetable begins anew', async () => {
      await using database = await open();
      const all = group(database.current, { job: '0 3 * * *' }, '2026-05-01T02:00:00Z');
      await all.process().run();
      all.set('2026-05-01T03:30:00Z');
      await all.process({ job: '15 3 * * *' }).run();
      assert.deepEqual(await all.planned(), []);
    });
  });
}
