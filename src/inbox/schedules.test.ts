import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { cronTimetable, readSchedules } from './schedules.ts';

describe('cron timetable', () => {
  function timetable(cron: string, timezone: string) {
    const read = cronTimetable(cron, timezone);
    if ('problem' in read) throw new Error(read.problem);
    return read;
  }

  test('a planned time is the last one from itself on, up to the next one', () => {
    const times = timetable('*/10 * * * * *', 'UTC');
    const at = Date.parse('2026-05-01T00:00:10Z');
    for (const now of [at, at + 1, at + 9_999]) assert.equal(times.last(now), at);
    assert.equal(times.last(at - 1), at - 10_000);
    assert.equal(times.next(at - 1), at);
    assert.equal(times.next(at), at + 10_000);
  });

  test('the last and the next time agree, around the changes of daylight saving time too', () => {
    const days = ['2026-03-29', '2026-10-25', '2026-04-05', '2026-10-04', '2026-06-01'].map(Date.parse);
    const crons = ['30 2 * * *', '0 * * * *', '*/20 * * * *', '59 23 * * *', '0 2 * * 0', '15 1,3 * * *'];
    fc.assert(
      fc.property(
        fc.constantFrom(...crons),
        fc.constantFrom('Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'UTC'),
        fc.constantFrom(...days),
        fc.integer({ min: -86_400_000, max: 2 * 86_400_000 }),
        (cron, zone, day, offset) => {
          const times = timetable(cron, zone);
          const now = day + offset;
          const last = times.last(now) ?? Number.NaN;
          const next = times.next(now) ?? Number.NaN;
          assert.ok(last <= now && now < next, `${last} ${now} ${next}`);
          assert.equal(times.next(last), next, 'nothing between them');
          assert.equal(times.last(last), last);
          assert.equal(times.last(next - 1), last);
        },
      ),
      { numRuns: 300 },
    );
  });

  test('an invalid cron expression is reported', () => {
    for (const cron of ['', 'x', '* * * *', '2027-01-01T00:00:00', '0 3 * * * 2026 1']) {
      assert.deepEqual(cronTimetable(cron, 'UTC'), {
        problem: 'must be a cron expression of five or six fields',
      });
    }
    assert.deepEqual(cronTimetable('61 * * * *', 'UTC'), {
      problem: 'is not a cron expression: Invalid value for minute: 61',
    });
    assert.deepEqual(cronTimetable('0 3 30 2 *', 'UTC'), { problem: 'never matches a time' });
    assert.ok('next' in cronTimetable(' @daily ', 'UTC'));
  });
});

describe('read schedules', () => {
  function read(value: unknown) {
    const problems: string[] = [];
    return { schedules: readSchedules(value, 'x: webhook.schedules', problems), problems };
  }

  test('a schedule is a cron expression, or an object with one; the rest has defaults', () => {
    const { schedules, problems } = read({
      nightly: '0 3 * * *',
      b: { cron: ' @daily ', event: 'e', data: { a: 1 } },
    });
    assert.deepEqual(problems, []);
    assert.deepEqual(
      schedules.map(({ timetable: _, ...rest }) => rest),
      [
        { name: 'nightly', event: 'nightly', data: {}, grace: 3_600_000, plan: '0 3 * * * UTC' },
        { name: 'b', event: 'e', data: { a: 1 }, grace: 3_600_000, plan: '@daily UTC' },
      ],
    );
    assert.deepEqual(read(undefined), { schedules: [], problems: [] });
  });

  test('all that is wrong is said by its path', () => {
    const { problems } = read({
      A: '0 3 * * *',
      b: 'often',
      c: { cron: '61 * * * *', grace: 5 },
      d: { cron: '61 * * * *' },
      e: { cron: '0 3 * * *', timezone: 'Mars/Base', cronn: 1 },
      f: { cron: '0 3 * * *', timezone: 'Mars/Base' },
      g: 5,
      h: { cron: '0 3 * * *', data: [1] },
    });
    const at = 'x: webhook.schedules';
    assert.deepEqual(problems, [
      `${at}.A must have a name of lower-case letters, digits and "-" that begins with a letter`,
      `${at}.b must be a cron expression of five or six fields`,
      `${at}.c.grace must be a whole number from 60000 to 2678400000 (milliseconds)`,
      `${at}.d.cron is not a cron expression: Invalid value for minute: 61`,
      `${at}.e has an unknown key "cronn"; did you mean cron?`,
      `${at}.f.timezone is not a time zone: "Mars/Base"`,
      `${at}.g must be a cron expression, or an object with one as its "cron"`,
      `${at}.h.data must be an object of JSON values`,
    ]);
  });
});
