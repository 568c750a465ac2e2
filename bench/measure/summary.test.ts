import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Measured } from './compare.ts';
import { p99Findings } from './comparison.ts';
import { summarise } from './summary.ts';

/** A contender with a rate and a p99 for each round. */
function contender(label: string, rounds: readonly (readonly [perSecond: number, p99: number])[]): Measured {
  const rest = { p50: 1, max: 9, requests: 1, failed: 0, cpu: 10, memory: 100, disturbed: 0 };
  return {
    label,
    rounds: rounds.map(([perSecond, p99]) => ({ ...rest, perSecond, p99, pacedP99: 7 - p99 / 2 })),
  };
}

const measured = [
  contender('Us', [
    [300, 2],
    [320, 3],
    [310, 4],
  ]),
  contender('Us, not bound', [[900, 1]]),
  contender('Slow', [
    [100, 9],
    [100, 12],
    [155, 10],
  ]),
  contender('Steady', [
    [200, 6],
    [160, 4],
    [155, 5],
  ]),
  contender('bare node:http', [
    [600, 1],
    [640, 1],
    [620, 1],
  ]),
];
const options = { measured, name: 'row', title: 'Row' };

test('the ratio of p99 stands beside the ratio of rates, for each that is no variant of the first', () => {
  const [rates, ratios] = summarise(options).tables;
  assert.deepEqual(
    rates?.lines.map(([label, , , , p99]) => [label, p99]),
    [
      ['Us', '3.00'],
      ['Us, not bound', '1.00'],
      ['Slow', '10.00'],
      ['Steady', '5.00'],
      ['bare node:http', '1.00'],
    ],
  );
  assert.deepEqual(ratios?.head, [
    'Us /',
    'rate',
    'lowest-highest',
    'p99',
    'lowest-highest',
    'paced p99',
    'lowest-highest',
    'CPU/request',
  ]);
  assert.deepEqual(ratios?.lines, [
    ['Slow', '3.10x', '2.00-3.20', '0.30x', '0.22-0.40', '2.75x', '2.40-5.50', '1.00x'],
    ['Steady', '1.94x', '1.50-2.00', '0.60x', '0.33-0.80', '1.22x', '1.10-1.50', '1.00x'],
    ['bare node:http', '0.50x', '0.50-0.50', '3.00x', '2.00-4.00', '0.85x', '0.77-0.92', '1.00x'],
  ]);
});

test('a target of p99 is held against the best peer, which bare node:http is not', () => {
  const { findings } = summarise({ ...options, targets: { rate: { Slow: 4, Absent: 9 }, p99: 1 } });
  assert.deepEqual(findings, [
    { what: 'Us / Slow', unit: 'x', value: 3.1, spread: [2, 3.2], target: { atLeast: 4 } },
    {
      what: 'p99 of Us / of the best peer, Steady',
      unit: 'x',
      value: 0.6,
      spread: [1 / 3, 0.8],
      target: { atMost: 1 },
    },
    {
      what: 'paced p99 of Us / of the best peer, Slow',
      unit: 'x',
      value: 2.75,
      spread: [2.4, 5.5],
      target: { atMost: 1 },
    },
  ]);
});

test('who does less than the first is no peer', () => {
  const { findings, tables } = summarise({
    ...options,
    targets: { p99: 1 },
    ceilings: ['Steady', 'bare node:http'],
  });
  assert.deepEqual(
    findings.map(({ what }) => what),
    ['p99 of Us / of the best peer, Slow', 'paced p99 of Us / of the best peer, Slow'],
  );
  assert.equal(tables[1]?.lines.length, 3);
});

test('without peers there is no p99 to hold', () => {
  const [us] = measured;
  assert.ok(us);
  assert.throws(() => p99Findings(us, [], 1), /no peer/);
  assert.deepEqual(summarise({ ...options, measured: [us] }).findings, []);
});
