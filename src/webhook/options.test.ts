import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConfigError } from '../config/config-error.ts';
import type { Inbox } from '../inbox/inbox.ts';
import { readOptions } from './options.ts';

const inbox = {} as Inbox;

test('all options that cannot be used are told at once', () => {
  for (const stopTimeout of [-1, 1.5, Number.NaN]) {
    assert.throws(
      () => readOptions({ inbox, stopTimeout, attempts: 0 }),
      (error) =>
        error instanceof ConfigError &&
        error.problems.length === 2 &&
        /webhook\.attempts/.test(error.message) &&
        /webhook\.stopTimeout must be/.test(error.message),
    );
  }
  assert.equal(readOptions({ inbox, stopTimeout: 0 }).stopTimeout, 0);
  assert.equal(readOptions({ inbox }).stopTimeout, 8_000);
});
