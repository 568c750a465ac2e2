import assert from 'node:assert/strict';
import { randomUUIDv7 } from 'node:crypto';
import { test } from 'node:test';
import { openDatabase } from '../../sql/open.ts';
import type { NewDelivery } from '../delivery.ts';
import type { PruneRule } from '../inbox.ts';
import { prune, retention } from './retention.ts';

const SETTLING = 60_000;

const NOW = 1_700_000_000_000;

function delivery(receivedAt: number, target: string | undefined, size = 10): NewDelivery {
  return {
    id: randomUUIDv7(),
    source: '',
    event: 'e',
    dataPointer: '',
    contentType: null,
    body: new Uint8Array(size),
    receivedAt,
    dedupKey: null,
    jobs: target === undefined ? [] : [{ target, orderKey: null }],
  };
}

async function opened(maxAge: number, maxBytes: number) {
  const database = openDatabase('sqlite::memory:');
  const { inbox, deliveries } = database;
  const task = retention({ inbox, maxAge, maxBytes, dedupAge: 0, onPruned() {}, onError: assert.fail });
  const settle = async (target: string, kind: 'done' | 'dead') => {
    for (const job of await inbox.claim(target, 10_000, 'me', NOW, { now: NOW * 2 })) {
      await inbox.settle(job, 'me', kind === 'done' ? { kind } : { kind, error: 'x' }, NOW);
    }
  };
  return {
    database,
    inbox,
    deliveries,
    task,
    prune: (now: number) => prune({ inbox, maxAge, maxBytes, dedupAge: 0 }, now),
    settle,
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
}

test('old deliveries go, open ones and young ones stay', async () => {
  await using setup = await opened(1_000, 0);
  const { inbox, deliveries, settle } = setup;
  const old = NOW - 1_001;
  for (let i = 0; i < 1_200; i++) await inbox.append(delivery(old, 'done'));
  await inbox.append(delivery(old, 'dead'));
  await inbox.append(delivery(old, undefined));
  const open = delivery(old, 'open');
  const young = delivery(NOW + 1, undefined);
  await inbox.append(open);
  await inbox.append(young);
  await settle('done', 'done');
  await settle('dead', 'dead');
  assert.equal(await setup.prune(NOW), 1, 'the others ended only now');
  assert.equal(await setup.prune(NOW + 1_000), 0);
  assert.equal(await setup.prune(NOW + 1_001), 1_201);
  assert.deepEqual(
    (await deliveries.list({}, 10)).items.map(({ id }) => id),
    [young.id, open.id],
  );
});

test('a store that is too large loses the deliveries that were done first, and no other', async () => {
  await using setup = await opened(0, 2_000_000);
  const { inbox, deliveries, settle } = setup;
  const kept = [delivery(NOW - 9, 'dead', 100_000), delivery(NOW - 9, undefined, 100_000)];
  for (const each of kept) await inbox.append(each);
  await settle('dead', 'dead');
  for (let i = 0; i < 700; i++) await inbox.append(delivery(NOW - 8, 'done', 10_000));
  await settle('done', 'done');
  assert.ok((await inbox.size()) > 6_000_000);
  assert.equal(await setup.prune(NOW + SETTLING), 0, 'the last minute stays');
  assert.ok((await setup.prune(NOW + SETTLING + 1)) >= 500);
  const size = await inbox.size();
  assert.ok(size <= 2_000_000 && size > 1_980_000, `no more than needed: ${size}`);
  for (const { id } of kept) assert.ok(await deliveries.find(id));
});

test('a prune ends when nothing can be removed, however large the inbox is', async () => {
  await using setup = await opened(0, 1);
  await setup.inbox.append(delivery(NOW - 8, 'open'));
  assert.equal(await setup.prune(NOW + SETTLING + 1), 0);
});

test('a stop ends it', async () => {
  await using setup = await opened(1, 0);
  setup.task.start();
  await setup.task.stop();
});

test('what nobody handles is looked through before anything is removed', async () => {
  const kinds: string[] = [];
  const step = { removed: 0, looked: 0, isLast: true };
  const prunes = async (rule: PruneRule) => {
    kinds.push(rule.kind);
    return step;
  };
  const inbox = { prune: prunes, forgetKeys: async () => step };
  await prune({ inbox, maxAge: 1, maxBytes: 1, dedupAge: 0 }, NOW);
  assert.deepEqual(kinds, ['unhandled', 'ended', 'excess']);
});
