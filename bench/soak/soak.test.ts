import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { StoredJob } from '../../test/proof/kill/store-reader.ts';
import { unhandled } from './audit.ts';
import { type Fault, nextFault } from './faults.ts';
import type { Outcome } from './outcome.ts';
import { drawTime } from './plot.ts';
import { Recorder } from './recorder.ts';
import { writeReport } from './report.ts';
import { inParts, memoryTrend, type Sample } from './samples.ts';
import { slopePerHour } from './slope.ts';

test('the slope is that of the line that fits best, in an hour', () => {
  const line = [0, 10, 20, 30].map((at) => ({ at, value: 100 + at / 36 }));
  assert.ok(Math.abs(slopePerHour(line) - 100) < 1e-9);
  const noise = line.map(({ at, value }, i) => ({ at, value: value + (i % 2 === 0 ? 1 : -1) }));
  assert.ok(slopePerHour(noise) < 100);
  assert.equal(slopePerHour([{ at: 3, value: 3 }]), Number.NaN);
});

test('a window has what happened since the last one; counts are from the start', () => {
  const recorder = new Recorder();
  for (let i = 1; i <= 100; i++) recorder.succeeded('writes', 'create', i);
  recorder.failed('503 STORE_UNAVAILABLE');
  const { p50, p99, requests, errors } = recorder.take();
  assert.deepEqual([p50.writes, p99.writes, p50.reads, requests, errors], [50, 99, Number.NaN, 101, 1]);
  recorder.succeeded('reads', 'read', 7);
  const { p50: later, requests: one } = recorder.take();
  assert.deepEqual([later.writes, later.reads, one], [Number.NaN, 7, 1]);
  assert.deepEqual(
    [...recorder.counts],
    [
      ['create', 100],
      ['read', 1],
    ],
  );
  assert.deepEqual([...recorder.errors], [['503 STORE_UNAVAILABLE', 1]]);
});

/** Samples of a process that is killed at the start and one whose memory grows by a MiB in each second. */
function samples(count: number): readonly Sample[] {
  const recorder = new Recorder();
  return Array.from({ length: count }, (_, i) => {
    recorder.succeeded('writes', 'create', i + 1);
    const process = i < 2 ? 'first' : 'second';
    return { at: i + 1, ...recorder.take(), usages: [{ process, memoryMiB: 100 + i, descriptors: 40 + i }] };
  });
}

test('the memory is that of the process that lived longest, once it was warm', () => {
  const trend = memoryTrend(samples(12));
  assert.equal(trend?.process, 'second');
  assert.deepEqual([trend.firstMiB, trend.lastMiB, trend.seconds], [104, 111, 7]);
  assert.ok(Math.abs(trend.perHourMiB - 3_600) < 1e-6);
  assert.equal(memoryTrend([]), undefined);
});

test('parts have equal time and all samples', () => {
  const parts = inParts(samples(10), 3);
  assert.deepEqual(
    parts.map((part) => part.length),
    [3, 3, 4],
  );
  assert.equal(inParts([], 2).flat().length, 0);
});

test('a plot has a line for each series, a gap where there is no number, and marks', () => {
  const points = [1, 2, Number.NaN, 4, 8].map((value, i) => ({ at: i * 60, value }));
  const svg = drawTime({
    title: 'A <title>',
    unit: 'ms',
    scale: 'logarithmic',
    lines: [{ label: 'a & b', points }],
    marks: [60],
  });
  assert.match(svg, /A &#60;title&#62; \(ms\)/);
  assert.match(svg, /a &#38; b/);
  assert.doesNotMatch(svg, /NaN|Infinity/);
  const [, path = ''] = /<path d="(M[^"]*)" fill="none"/.exec(svg) ?? [];
  assert.deepEqual(path.replaceAll(/[\d. ]/g, ''), 'MLML');
  assert.match(drawTime({ title: '', unit: '', scale: 'linear', lines: [], marks: [] }), /^<svg/);
});

test('SQLite has no process ended after a third of the faults; each fault has its turn', () => {
  const run = async () => {};
  const faults: readonly Fault[] = [
    { name: 'kill', endsProcess: true, run },
    { name: 'freeze', run },
    { name: 'readers', run },
  ];
  const names = (engine: 'sqlite' | 'postgres') =>
    Array.from({ length: 9 }, (_, i) => nextFault(faults, engine, i, 9)?.name);
  assert.deepEqual(names('sqlite').slice(0, 3), ['kill', 'freeze', 'readers']);
  assert.ok(!names('sqlite').slice(3).includes('kill'));
  assert.equal(names('postgres').filter((name) => name === 'kill').length, 3);
});

test('a delivery that is lost, open, doubled, or done without its handler is found', () => {
  const job = (token: string, status: string) => ({ token, status }) as StoredJob;
  const sent = ['a', 'b', 'c', 'd', 'e'].map((token) => ({ token, event: 'steady' }));
  const attempt = { attempt: 1, run: 1, ended: true, begunAt: 0, endedAt: 1 };
  const effects = new Map(['a', 'b', 'c', 'd'].map((token) => [token, [attempt]]));
  const jobs = [job('a', 'done'), job('b', 'open'), job('c', 'done'), job('c', 'done'), job('e', 'done')];
  assert.deepEqual(unhandled([...sent, { token: 'x', event: 'nobody' }], jobs, effects), [
    'delivery b (steady) has the jobs: open',
    'delivery c (steady) has the jobs: done, done',
    'delivery d (steady) has the jobs: none',
    'delivery e (steady) is done, and its handler has not ended',
  ]);
});

test('the report says what was lost, and has a picture for each plot', () => {
  const outcome: Outcome = {
    engine: 'sqlite',
    command: 'npm run soak',
    machine: 'A machine.',
    date: '2026-01-01',
    seconds: 12,
    samples: samples(12),
    faults: [
      { name: 'process killed', at: 2, recoveredMs: 800 },
      { name: 'process killed', at: 9, recoveredMs: Number.NaN },
    ],
    ends: [],
    counts: new Map([['create', 12]]),
    errors: new Map([['503 BUSY', 1]]),
    audit: { users: 12, deliveries: 0, handledAgain: 0, problems: [] },
  };
  const files = writeReport(outcome);
  const text = files['sqlite.md'] ?? '';
  assert.match(text, /lost, or not handled: none\*\*/);
  assert.match(text, /from 104 to 111 MiB/);
  assert.match(text, /\| process killed \| +2 \| +800 \| +800 \|/);
  for (const [, name = ''] of text.matchAll(/!\[\w+\]\(([\w.-]+)\)/g))
    assert.match(files[name] ?? '', /^<svg/);
  assert.equal(Object.keys(files).length, 5);
  const lost = writeReport({ ...outcome, audit: { ...outcome.audit, problems: ['delivery d1 is lost'] } });
  assert.match(lost['sqlite.md'] ?? '', /not handled: \n {2}- delivery d1 is lost/);
});
