import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Inbox } from '../../src/inbox/inbox.ts';
import { EndpointLanes, endpointTargetName } from '../../src/sending/lanes.ts';
import { openDatabase } from '../../src/sql/open.ts';
import { startDispatcher } from '../support/dispatch.ts';
import { newDelivery } from '../support/new-delivery.ts';
import { waitFor } from '../support/wait-for.ts';

test('events that are stored without a pause do not keep those that wait from being claimed', async () => {
  await using database = openDatabase('sqlite::memory:');
  const going: (() => void)[] = [];
  const inbox: Inbox = {
    ...database.inbox,
    async appendAll(deliveries, handOvers = []) {
      const { promise, resolve } = Promise.withResolvers<void>();
      if (handOvers.some((each) => each !== undefined)) going.push(resolve);
      else resolve();
      await promise;
      return database.inbox.appendAll(deliveries, handOvers);
    },
  };
  const ran: string[] = [];
  const group = new EndpointLanes({ perEndpoint: 4, perTenant: 8, failing: 4 });
  await using started = startDispatcher(inbox, (job) => void ran.push(job.target), { target: { group } });
  const { dispatcher, failures } = started;
  const [first, claimed, later] = ['a', 'b', 'c'].map((id) => endpointTargetName('t', id));
  const append = (target = '', orderKey: string | null = null) =>
    dispatcher.append(newDelivery({ jobs: [{ target, orderKey }] }));

  const handedOver = append(first);
  assert.equal(going.length, 1);
  // A job with a key is always claimed: the claim waits for the one that is being stored.
  await append(claimed, 'key');
  const next = append(later);
  going[0]?.();
  await waitFor('the claim', () => claimed !== undefined && ran.includes(claimed));
  for (const go of going) go();
  await Promise.all([handedOver, next]);
  await waitFor('all', () => ran.length === 3);
  // Later ones start without a claim again.
  const last = append(first);
  going.at(-1)?.();
  await last;
  await waitFor('the last', () => ran.length === 4);
  assert.ok(going.length >= 2);
  assert.deepEqual(failures, []);
});
