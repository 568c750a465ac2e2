import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Figures, scalingTable } from './table.ts';

const COST = { seconds: 2, loadCpu: 0.5, others: [0.01, 0.02] as const, walBytes: 4_000, writes: 10 };

function figures(what: string, processes: number, requests: number, serverCpu: number): Figures {
  return {
    what,
    processes,
    load: { perSecond: requests / 2, requests, failed: 0, p50: 1, p99: 2, max: 3 },
    cost: { ...COST, serverCpu, processCpu: 0.02 },
  };
}

test('a line has the medians of its rounds, per request', () => {
  const found = [figures('creates', 2, 1_000, 0.3), figures('creates', 1, 1_000, 0.1)];
  const { head, lines } = scalingTable([...found, ...found, figures('creates', 1, 1_000, 0.9)]);
  assert.deepEqual(lines, [
    ['creates', '1', '3', '500', '1.00', '2.00', '100', '20.0', '5 %', '26 %', '2 %', '4.00', '100'],
    ['creates', '2', '2', '500', '1.00', '2.00', '300', '20.0', '15 %', '26 %', '2 %', '4.00', '100'],
  ]);
  assert.equal(head.length, lines[0]?.length);
});

test('a disturbed round counts only if there is no other', () => {
  const calm = figures('creates', 1, 1_000, 0.1);
  const disturbed = {
    ...calm,
    cost: { ...COST, serverCpu: 0.9, processCpu: 0.02, others: [0.5, 0] as const },
  };
  const cpu = (found: readonly Figures[]) => scalingTable(found).lines.map((line) => [line[2], line[6]]);
  assert.deepEqual(cpu([disturbed, calm, disturbed]), [['1', '100']]);
  assert.deepEqual(cpu([disturbed, disturbed]), [['2', '900']]);
});

test('without requests, the cost is that of a second, and no rate is shown', () => {
  const idle = figures('idle', 4, 0, 0.004);
  const { lines } = scalingTable([{ ...idle, load: { ...idle.load, p50: 0, p99: 0 } }]);
  assert.deepEqual(lines, [
    ['idle', '4', '1', '-', '-', '-', '2,000', '10,000', '0 %', '26 %', '2 %', '2,000', '-'],
  ]);
});

test('kinds keep their order, and reads have no commits', () => {
  const reads = {
    ...figures('reads', 4, 100, 1),
    cost: { ...COST, serverCpu: 1, processCpu: 1, walBytes: 0, writes: 1 },
  };
  const { lines } = scalingTable([reads, figures('creates', 1, 100, 1), { ...reads, processes: 1 }]);
  assert.deepEqual(
    lines.map((line) => [line[0], line[1], line.at(-1)]),
    [
      ['reads', '1', '-'],
      ['reads', '4', '-'],
      ['creates', '1', '10.0'],
    ],
  );
});
