import assert from 'node:assert/strict';
import { test } from 'node:test';
import { contractHandlers } from './contract-handlers.ts';

test('they say what they did, and leave naming the delivery to their log, which does it', () => {
  const said: unknown[][] = [];
  const note = (...args: unknown[]) => void said.push(args);
  const context = {
    log: { info: note, warn: note, error: note },
    attempt: 1,
    signal: new AbortController().signal,
  };
  for (const handler of Object.values(contractHandlers)) {
    void handler({ id: '1' } as never, context as never);
  }
  assert.deepEqual(said, [['commit notification processed'], ['payment notification processed']]);
});
