import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConfigError } from '../config/load.ts';
import type { Inbox } from '../inbox/inbox.ts';
import { readOptions } from './webhook.ts';

const inbox = {} as Inbox;

test('the headers that it keeps are read in lower case, and none may hold a secret', () => {
  assert.deepEqual(readOptions({ inbox, headers: ['X-Event'] }).headers, ['x-event']);
  for (const name of ['x event', 'Authorization', 'x-webhook-token', 'x-hub-signature-256', 'cookie']) {
    assert.throws(
      () => readOptions({ inbox, headers: [name] }),
      /webhook\.headers must be .*none of them for a secret/,
    );
  }
});

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
