import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limitedEntry } from './limited-entry.ts';

function capture() {
  const entries: unknown[] = [];
  const info = (fields: unknown, message?: unknown) => void entries.push([fields, message]);
  return { entries, log: { info } as Parameters<typeof limitedEntry>[0] };
}

test('the first hundred of a second are logged as they come, the rest as their number', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { entries, log } = capture();
  using entry = limitedEntry(log, 'message');
  for (let n = 1; n <= 250; n++) entry.write({ n });
  assert.deepEqual(
    entries,
    Array.from({ length: 100 }, (_, i) => [{ n: i + 1 }, 'message']),
  );
  t.mock.timers.tick(1_000);
  assert.deepEqual(entries.slice(100), [[{ suppressed: 150 }, 'message']]);
  entry.write({ n: 251 });
  assert.deepEqual(entries.slice(101), [[{ n: 251 }, 'message']]);
  t.mock.timers.tick(1_000);
  assert.equal(entries.length, 102, 'a second with few entries says no more');
});

test('what was only counted is told at the end', () => {
  const { entries, log } = capture();
  const entry = limitedEntry(log, 'message');
  for (let n = 1; n <= 101; n++) entry.write({ n });
  entry[Symbol.dispose]();
  assert.deepEqual(entries.at(-1), [{ suppressed: 1 }, 'message']);
  entry[Symbol.dispose]();
  assert.equal(entries.length, 101);
});
