import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { HISTORY_WINDOWS, History, type Series } from './history.ts';
import { LatencyHistogram } from './meters.ts';

const HISTORY_INTERVAL = 3_000;

describe('history', () => {
  /** A history whose clock goes by hand. */
  function historyOf(sources: readonly Series[]) {
    let now = 1_000_000;
    const history = new History(sources, () => now);
    const tick = () => {
      now += HISTORY_INTERVAL;
      history.tick();
    };
    return { history, tick, [Symbol.dispose]: () => history[Symbol.dispose]() };
  }

  test('counts become rates, means and shares, gauges means and peaks', () => {
    let requests = 0;
    let errors = 0;
    let value = 0;
    using made = historyOf([
      { kind: 'rate', name: 'rate', unit: '1/s', read: () => requests },
      { kind: 'ratio', name: 'share', unit: 'share', read: () => errors, per: () => requests },
      { kind: 'mean', name: 'mean', unit: '', read: () => value },
      { kind: 'peak', name: 'peak', unit: '', read: () => value },
    ]);
    for (let i = 1; i <= 10; i++) {
      requests += 30;
      errors += 3;
      value = i;
      made.tick();
    }
    const fine = made.history.read('15m');
    assert.equal(fine.times.length, 10);
    assert.deepEqual(fine.columns.rate?.values.at(-1), 10);
    assert.deepEqual(fine.columns.share?.values.at(-1), 0.1);
    const { interval, times, columns } = made.history.read('3h');
    assert.deepEqual([interval, times], [30_000, [1_030_000]]);
    assert.deepEqual(
      Object.values(columns).map(({ values }) => values),
      [[10], [0.1], [5.5], [10]],
    );
  });

  test('a reading that fails and a span without events leave gaps', () => {
    using made = historyOf([
      { kind: 'percentile', name: 'p99', unit: 'ms', histogram: new LatencyHistogram(), share: 0.99 },
      { kind: 'ratio', name: 'share', unit: 'share', read: () => 0, per: () => 0 },
      {
        kind: 'mean',
        name: 'broken',
        unit: '',
        read() {
          throw new Error('gone');
        },
      },
    ]);
    made.tick();
    const { columns } = made.history.read('15m');
    assert.deepEqual(
      Object.values(columns).map(({ values }) => values),
      [[null], [null], [null]],
    );
  });

  test('a day of sixty columns stays in its memory, and old points make room', () => {
    let at = 0;
    const sources = Array.from(
      { length: 60 },
      (_, i): Series => ({ kind: 'mean', name: `column${i}`, unit: '', read: () => at }),
    );
    using made = historyOf(sources);
    const { bytes } = made.history;
    assert.ok(bytes < 3 * 1024 * 1024, `${bytes}`);
    for (at = 1; at <= 400; at++) made.tick();
    assert.equal(made.history.bytes, bytes);
    const { times, columns } = made.history.read('15m');
    assert.equal(times.length, 300);
    assert.deepEqual([columns.column0?.values[0], columns.column0?.values.at(-1)], [101, 400]);
    assert.equal(made.history.read('15m', times.at(-3)).times.length, 2);
    for (const window of HISTORY_WINDOWS) assert.ok(made.history.read(window).times.length > 0);
  });
});
