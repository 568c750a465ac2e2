import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { HandlingShare } from './handling-share.ts';

/** What the doors acknowledge in a millisecond in which they do nothing else. */
const PER_MS = 10;

/** An event loop of the test's own, with a clock that only work moves on. */
class Loop {
  now = 0;
  idle = 0;
  #immediates: (() => void)[] = [];
  #timers: { readonly at: number; readonly run: () => void }[] = [];

  constructor(t: TestContext) {
    t.mock.method(globalThis, 'setImmediate', (run: () => void) => void this.#immediates.push(run));
    t.mock.method(globalThis, 'setTimeout', (run: () => void, wait: number) => {
      this.#timers.push({ at: this.now + wait, run });
    });
  }

  /** One iteration: what is due now. */
  turn(): void {
    const due = this.#timers.filter(({ at }) => at <= this.now);
    this.#timers = this.#timers.filter(({ at }) => at > this.now);
    for (const { run } of due) run();
    for (const run of this.#immediates.splice(0)) run();
  }
}

/** A share and a worker whose attempts take `attempt` milliseconds each; there are always more to begin. */
function simulate(t: TestContext, attempt: number) {
  const loop = new Loop(t);
  const share = new HandlingShare({ now: () => loop.now, idle: () => loop.idle });
  let begun = 0;
  const begin = (end: number): number => {
    const before = begun;
    while (loop.now < end) {
      loop.now += attempt;
      begun++;
    }
    share.request(begin);
    return begun - before;
  };
  share.request(begin);

  /** Passes so much time: in each iteration the doors are busy for `busy` milliseconds, and idle is what is left of one. */
  function pass(milliseconds: number, busy: number) {
    const [began, before] = [loop.now, begun];
    while (loop.now - began < milliseconds) {
      const turn = loop.now;
      loop.turn();
      for (let i = 0; i < PER_MS * busy; i++) share.acknowledged();
      const left = Math.max(0, 1 - busy - (loop.now - turn));
      loop.now += busy + left;
      loop.idle += left;
    }
    return { begun: begun - before, took: loop.now - began };
  }
  return { share, pass };
}

test('without acknowledgements turn follows turn, however busy the process is', (t) => {
  const { share, pass } = simulate(t, 0.1);
  const { begun, took } = pass(500, 0);
  assert.equal(share.share, 1);
  assert.ok(begun * 0.1 > 0.9 * took, `${begun} in ${took} ms`);
});

test('while acknowledging needs all of the time, handling gets a quarter of it', (t) => {
  const { share, pass } = simulate(t, 0.1);
  pass(500, 1);
  assert.equal(share.share, 1 / 4);
  const { begun, took } = pass(2_000, 1);
  // An attempt costs its turn, and its claim and its outcome more than an acknowledgement.
  const used = (begun * (0.1 + 0.16)) / took;
  assert.ok(used > 0.2 && used < 0.3, `${used}`);
});

test('a handler that computes is charged its time, and never starves', (t) => {
  const { pass } = simulate(t, 20);
  pass(500, 1);
  const { begun, took } = pass(5_000, 1);
  const used = (begun * 20) / took;
  assert.ok(used > 0.2 && used < 0.3, `${used}`);
});

test('a handler that blocks for long waits no longer than for a tenth of a second of its time', (t) => {
  const { pass } = simulate(t, 5_000);
  pass(3_000, 1);
  assert.equal(pass(1_000, 1).begun, 1);
});

test('doors that keep up leave handling what it wants', (t) => {
  const { share, pass } = simulate(t, 0.1);
  pass(500, 0.2);
  const { begun, took } = pass(1_000, 0.2);
  // With all of the rest there would be nothing left to answer a burst with.
  assert.ok(share.share > 0.5, `${share.share}`);
  assert.ok((begun * 0.1) / took > 0.3, `${begun} in ${took} ms`);
});

test('once the load ends handling has all of the time again, within a few looks', (t) => {
  const { share, pass } = simulate(t, 0.1);
  pass(500, 1);
  pass(200, 0);
  assert.equal(share.share, 1);
});

test('handling that has used more than its share waits no longer once the doors are idle', (t) => {
  const { pass } = simulate(t, 100);
  pass(3_000, 1);
  // A turn of 100 ms at a quarter of the time is paid after 400 ms.
  while (pass(10, 1).begun === 0);
  assert.equal(pass(30, 1).begun, 0);
  assert.ok(pass(100, 0).begun > 0);
});

test('those that have attempts to begin take turns', (t) => {
  const loop = new Loop(t);
  const share = new HandlingShare({ now: () => loop.now, idle: () => 0 });
  const order: string[] = [];
  const worker = (name: string, left: number) => {
    const begin = (end: number) => {
      order.push(name);
      loop.now = end;
      if (--left > 0) share.request(begin);
      return 1;
    };
    share.request(begin);
  };
  worker('a', 3);
  worker('b', 2);
  for (let i = 0; i < 9; i++) loop.turn();
  assert.deepEqual(order, ['a', 'b', 'a', 'b', 'a']);
});
