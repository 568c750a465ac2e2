import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { LARGE_REPLY, ReplyBudget } from './reply-budget.ts';

const MIB = 1024 * 1024;

/** A reply that a client has not read. */
function reply() {
  const listeners: (() => void)[] = [];
  const sent = {
    cuts: 0,
    bytes: 0,
    taken: () => sent.bytes,
    onClose: (listener: () => void) => void listeners.push(listener),
    cut() {
      sent.cuts++;
      sent.close();
    },
    close() {
      for (const listener of listeners.splice(0)) listener();
    },
  };
  return sent;
}

const busy = { status: 503, code: 'BUSY', headers: { 'retry-after': '1' } };

test('what clients have not read is bounded, and what they read or leave makes room', () => {
  const budget = new ReplyBudget(2 * MIB);
  const [first, second] = [reply(), reply()];
  budget.take(MIB, first);
  budget.take(MIB, second);
  assert.throws(() => budget.take(LARGE_REPLY, reply()), busy);
  first.close();
  first.close();
  budget.take(MIB, reply());
  assert.throws(() => budget.take(LARGE_REPLY, reply()), busy);
  assert.equal(second.cuts, 0);
});

test('small replies are not counted', () => {
  const budget = new ReplyBudget(1);
  for (let i = 0; i < 10; i++) budget.take(LARGE_REPLY - 1, reply());
});

test('one reply may be larger than the bound', () => {
  const budget = new ReplyBudget(MIB);
  const large = reply();
  budget.take(10 * MIB, large);
  assert.throws(() => budget.take(LARGE_REPLY, reply()), busy);
  large.close();
  budget.take(LARGE_REPLY, reply());
});

test('the replies that are unread for longest are cut for a new one, as many as it needs', async () => {
  const budget = new ReplyBudget(3 * MIB);
  const old = [reply(), reply()];
  for (const each of old) budget.take(MIB, each);
  await delay(1_050);
  const young = reply();
  budget.take(MIB, young);
  budget.take(MIB, reply());
  assert.deepEqual(
    old.map(({ cuts }) => cuts),
    [1, 0],
  );
  assert.throws(() => budget.take(3 * MIB, reply()), busy);
  assert.equal(young.cuts, 0);
});

test('a reply that its client reads, however slowly, is not cut', async () => {
  const budget = new ReplyBudget(2 * MIB);
  const [slow, stalled] = [reply(), reply()];
  budget.take(MIB, slow);
  budget.take(MIB, stalled);
  await delay(1_050);
  slow.bytes++;
  budget.take(MIB, reply());
  assert.deepEqual([slow.cuts, stalled.cuts], [0, 1]);
  assert.throws(() => budget.take(MIB, reply()), busy);
});
