import assert from 'node:assert/strict';
import { test } from 'node:test';
import { manualTarget } from '../../../test/support/dispatch.ts';
import { newDelivery } from '../../../test/support/new-delivery.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { openDatabase } from '../../sql/open.ts';
import type { Inbox } from '../inbox.ts';
import { Dispatcher } from './dispatcher.ts';

test('memory that becomes free goes to the target with the higher priority, and each may run one', {
  timeout: 300_000,
}, async () => {
  await using database = openDatabase('sqlite::memory:');
  await using cleanup = new AsyncDisposableStack();
  const claims: string[] = [];
  const inbox: Inbox = {
    ...database.inbox,
    claim(target, ...rest) {
      claims.push(target);
      return database.inbox.claim(target, ...rest);
    },
  };
  const jobs = ['low', 'high'].map((target) => ({ target, orderKey: null }));
  for (let i = 0; i < 2; i++) await inbox.append(newDelivery({ jobs }));
  const { attempts, run } = manualTarget();
  const failures: unknown[] = [];
  const shared = { run, concurrency: 4, timeout: 60_000, maxAttempts: 1, backoff: { base: 0, cap: 0 } };
  const dispatcher = new Dispatcher({
    inbox,
    targets: [
      { ...shared, name: 'low' },
      { ...shared, name: 'high', priority: 5 },
    ],
    events: { settled() {}, leaseLost() {}, overdue() {}, storeFailed: (error) => failures.push(error) },
    lease: 600_000,
    // Less than a body.
    maxBytes: 1,
  });
  cleanup.defer(() => dispatcher.stop(AbortSignal.abort()));
  // Not started: nothing polls. Both claim one, and then wait for room, the lower one first.
  for (const [i, target] of ['low', 'high'].entries()) {
    dispatcher.wake(target);
    await waitFor(`an attempt of ${target}`, () => attempts.length === i + 1);
    dispatcher.wake(target);
  }
  await waitFor('both to wait', async () => (await database.inbox.backlog()).open === 4);
  claims.length = 0;
  for (const attempt of attempts.slice()) attempt.end();
  await waitFor('the others', () => attempts.length === 4);
  assert.deepEqual(claims.slice(0, 2), ['high', 'low']);
  for (const attempt of attempts) attempt.end();
  await dispatcher.stop(AbortSignal.timeout(300_000));
  assert.deepEqual(failures, []);
});
