import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { gatherWrites } from './gather-writes.ts';

function open() {
  const written: string[] = [];
  return { written, stream: gatherWrites({ write: (text) => void written.push(text) }) };
}

test('what is written in one turn is passed on together, in order, at its end', async () => {
  const { written, stream } = open();
  stream.write('a\n');
  stream.write('b\n');
  assert.deepEqual(written, []);
  await nextTurn();
  assert.deepEqual(written, ['a\nb\n']);
  stream.write('c\n');
  await nextTurn();
  assert.deepEqual(written, ['a\nb\n', 'c\n']);
});

test('a turn that writes much does not gather it all', () => {
  const { written, stream } = open();
  for (let i = 0; i < 3; i++) stream.write('x'.repeat(70_000));
  assert.equal(written.length, 3);
});

test('a flush passes on at once, and only once', async () => {
  const { written, stream } = open();
  stream.write('last\n');
  stream.flushSync();
  assert.deepEqual(written, ['last\n']);
  stream.flushSync();
  await nextTurn();
  assert.deepEqual(written, ['last\n']);
});
