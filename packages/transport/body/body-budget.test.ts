import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KnownCaller } from '../caller.ts';
import type { HttpProblem } from '../problem.ts';
import { type Arrival, BodyBudget, type BodyBudgetOptions } from './body-budget.ts';

const KIB = 1024;
const MAX = 64 * KIB;

/** A budget of 64 KiB on a clock of its own, and bodies that are sent into it. */
function open(options: Partial<BodyBudgetOptions> = {}) {
  let now = 0;
  const budget = new BodyBudget({ max: MAX, now: () => now, ...options });

  /** A body of a client, of which nothing has come. */
  function body(client = '127.0.0.1', caller?: string) {
    const refused: string[] = [];
    const known = caller === undefined ? undefined : { kind: 'token' as const, name: caller };
    const sender = {
      client,
      caller: known && new KnownCaller({ ...known, scopes: new Set() }),
      refuse: ({ status, code }: HttpProblem) => void refused.push(`${status} ${code}`),
    };
    const arrival: Arrival = budget.open(sender);
    let received = 0;
    return {
      refused,
      arrival,
      /** Sends bytes, which take as much memory unless it is given; says why they are refused. */
      send(bytes: number, memory = arrival.held + bytes): string {
        received += bytes;
        try {
          budget.grow(arrival, memory, received);
          return 'taken';
        } catch (problem) {
          budget.close(arrival);
          return (problem as HttpProblem).code;
        }
      },
    };
  }

  return {
    budget,
    body,
    take: (bytes: number, client = '10.0.0.9') => budget.take(bytes, { client, caller: undefined }),
    /** Lets time pass. */
    pass(milliseconds: number) {
      now += milliseconds;
    },
  };
}

test('a body counts as it grows, until it is closed', () => {
  const { budget, body, take } = open();
  const first = body();
  assert.equal(first.send(40 * KIB), 'taken');
  assert.equal(budget.held, 40 * KIB);
  assert.equal(body().send(25 * KIB), 'BUSY');
  assert.ok(take(24 * KIB));
  assert.equal(first.send(1), 'BUSY');
  assert.equal(budget.held, 24 * KIB, 'what is refused holds nothing');
  budget.release(24 * KIB);
  budget.close(first.arrival);
  assert.equal(budget.held, 0);
});

test('what has come completely makes room for nobody', () => {
  const { budget, body, pass } = open();
  const complete = body();
  complete.send(60 * KIB);
  budget.complete(complete.arrival);
  pass(60_000);
  assert.equal(body('10.0.0.1').send(10 * KIB), 'BUSY');
  assert.deepEqual(complete.refused, []);
});

test('bodies that come too slowly make room, the slowest first, and no more of them than are needed', () => {
  const { body, pass } = open();
  const stalled = body();
  const slow = body();
  stalled.send(20 * KIB);
  slow.send(20 * KIB);
  pass(2_000);
  slow.send(KIB);
  const young = body();
  young.send(22 * KIB);
  assert.equal(body().send(20 * KIB), 'taken');
  assert.deepEqual([stalled.refused, slow.refused, young.refused], [['408 TOO_SLOW'], [], []]);
  assert.equal(body().send(20 * KIB), 'taken');
  assert.deepEqual([slow.refused, young.refused], [['408 TOO_SLOW'], []]);
  assert.equal(body().send(20 * KIB), 'BUSY', 'the others have begun just now');
});

test('a body that holds nothing is left alone, however slow it is', () => {
  const { body, pass } = open();
  const empty = body();
  body().send(60 * KIB);
  pass(10_000);
  assert.equal(body().send(30 * KIB), 'taken');
  assert.deepEqual(empty.refused, []);
});

test('a body above the minimum rate makes room for one that is four times as fast, for others not', () => {
  for (const [bytes, outcome] of [
    [6 * KIB, 'BUSY'],
    [22 * KIB, 'taken'],
  ] as const) {
    const { body, pass } = open();
    const steady = body();
    // 50 KiB a second.
    for (let i = 0; i < 12; i++) {
      assert.equal(steady.send(5 * KIB), 'taken');
      pass(100);
    }
    const next = body();
    assert.equal(next.send(bytes), outcome, `${bytes}`);
    assert.deepEqual(steady.refused, outcome === 'taken' ? ['408 TOO_SLOW'] : []);
  }
});

test('a slow body makes no room for itself by one that is no slower', () => {
  const { body, pass } = open();
  const first = body();
  const second = body();
  first.send(30 * KIB);
  second.send(30 * KIB);
  for (let i = 0; i < 4; i++) {
    pass(1_000);
    first.send(KIB / 2);
    second.send(KIB / 4);
  }
  assert.equal(second.send(KIB / 4, 40 * KIB), 'TOO_SLOW');
  assert.deepEqual(first.refused, []);
});

test('a body is as slow as it was lately: what came fast at first protects nobody for long', () => {
  const { body, pass } = open();
  const burst = body();
  burst.send(60 * KIB);
  for (let i = 0; i < 3; i++) {
    pass(1_000);
    burst.send(1);
  }
  assert.equal(body().send(20 * KIB), 'taken');
  assert.deepEqual(burst.refused, ['408 TOO_SLOW']);
});

test('the time that a body is not waited for makes it no slower, and meanwhile it makes room for nobody', () => {
  const { budget, body, pass } = open();
  const waited = body();
  waited.send(40 * KIB);
  pass(500);
  budget.pause(waited.arrival);
  pass(60_000);
  assert.equal(body().send(30 * KIB), 'BUSY');
  budget.resume(waited.arrival);
  pass(400);
  assert.equal(body().send(30 * KIB), 'BUSY', 'it has been waited for during 900 ms');
  pass(200);
  assert.equal(body().send(30 * KIB), 'taken');
  assert.deepEqual(waited.refused, ['408 TOO_SLOW']);
});

test('a client keeps a quarter when others need room, and its slowest bodies go', () => {
  const { body, pass } = open();
  const greedy = Array.from({ length: 6 }, () => body('10.0.0.1'));
  for (const each of greedy.slice(1)) each.send(10 * KIB);
  pass(500);
  greedy[0]?.send(11 * KIB);
  const refusals = () => greedy.map(({ refused }) => refused.join());
  assert.equal(body('10.0.0.1').send(10 * KIB), 'BUSY', 'it needs room of its own');
  assert.equal(body('10.0.0.2').send(20 * KIB), 'taken');
  assert.deepEqual(refusals(), ['', '503 BUSY', '503 BUSY', '', '', '']);
  for (let i = 3; i < 6; i++) assert.equal(body(`10.0.0.${i}`).send(10 * KIB), 'taken');
  // 11 KiB are left to it, and no share is larger than a quarter.
  assert.deepEqual(refusals(), ['', ...Array(5).fill('503 BUSY')]);
  assert.equal(body('10.0.0.9').send(12 * KIB), 'BUSY');
});

test('a client with one body may hold more than its share', () => {
  const { body } = open();
  const large = body('10.0.0.1');
  large.send(50 * KIB);
  assert.equal(body('10.0.0.2').send(20 * KIB), 'BUSY');
  assert.deepEqual(large.refused, []);
});

test('a complete body has others make room as well', () => {
  const { body, take, pass } = open();
  const slow = body();
  slow.send(60 * KIB);
  assert.equal(take(10 * KIB), false);
  pass(1_000);
  assert.equal(take(10 * KIB), true);
  assert.deepEqual(slow.refused, ['408 TOO_SLOW']);
});

test('the share is that of the caller where one is known, otherwise that of the network', () => {
  const { body } = open();
  const greedy = Array.from({ length: 3 }, (_, i) => body(`10.0.0.${i}`, 'ci'));
  for (const each of greedy) each.send(20 * KIB);
  assert.equal(body('10.0.0.0').send(10 * KIB), 'taken');
  assert.equal(greedy.filter(({ refused }) => refused.length > 0).length, 1);
  const { body: other } = open();
  const network = Array.from({ length: 3 }, (_, i) => other(`2001:db8::${i}`));
  for (const each of network) each.send(20 * KIB);
  assert.equal(other('2001:db8::9').send(10 * KIB), 'BUSY');
  assert.equal(other('2001:db9::9').send(10 * KIB), 'taken');
});

test('large bodies hold at most half together, and only large ones make room for them', () => {
  const { budget, body, take, pass } = open({ usual: 8 * KIB });
  const small = body();
  small.send(8 * KIB);
  const large = body();
  assert.equal(large.send(20 * KIB), 'taken');
  assert.equal(body().send(13 * KIB), 'BUSY');
  assert.ok(take(8 * KIB));
  pass(1_500);
  assert.equal(body().send(13 * KIB), 'taken');
  assert.deepEqual([small.refused, large.refused], [[], ['408 TOO_SLOW']]);
  assert.equal(budget.held, 29 * KIB);
});

test('a client for whom nothing was found is not searched for again at once, others are', () => {
  const { body, pass } = open();
  const first = body();
  first.send(30 * KIB);
  const second = body();
  second.send(30 * KIB);
  pass(995);
  assert.equal(body().send(10 * KIB), 'BUSY');
  pass(10);
  assert.equal(body().send(10 * KIB), 'BUSY', 'though somebody is slow by now');
  assert.equal(body('10.0.0.1').send(10 * KIB), 'taken');
  pass(20);
  assert.equal(body().send(30 * KIB), 'taken');
});
