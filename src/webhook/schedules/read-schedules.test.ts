import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readSchedules } from './read-schedules.ts';

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
    `${at}.d.cron is no cron expression: Invalid value for minute: 61`,
    `${at}.e has an unknown key "cronn"; did you mean cron?`,
    `${at}.f.timezone is no time zone: "Mars/Base"`,
    `${at}.g must be a cron expression, or an object with one as its "cron"`,
    `${at}.h.data must be an object of JSON values`,
  ]);
});
