import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { boundedGate } from './bounded-gate.ts';

const FULL = new Error('full');

test('so many at once, so many waiting, the others refused at once; time and again', async () => {
  const run = async (atOnce: number, waiting: number, rounds: readonly number[], scheduler: fc.Scheduler) => {
    const gate = boundedGate(atOnce, waiting, FULL);
    for (const tasks of rounds) {
      let running = 0;
      let most = 0;
      let started = 0;
      const all = Array.from({ length: tasks }, (_, i) =>
        gate(async () => {
          started++;
          most = Math.max(most, ++running);
          await scheduler.schedule(Promise.resolve());
          running--;
          if (i % 3 === 0) throw new Error('its own');
          return i;
        }),
      );
      const outcomes = await scheduler.waitFor(Promise.allSettled(all));
      const taken = Math.min(tasks, atOnce + waiting);
      assert.equal(started, taken);
      assert.equal(most, Math.min(tasks, atOnce));
      for (const [i, outcome] of outcomes.entries()) {
        if (outcome.status === 'fulfilled') assert.equal(outcome.value, i);
        else if (i >= taken) assert.equal(outcome.reason, FULL);
        else assert.equal(outcome.reason.message, 'its own');
      }
    }
  };
  const rounds = fc.array(fc.nat(12), { minLength: 2, maxLength: 4 });
  await fc.assert(fc.asyncProperty(fc.integer({ min: 1, max: 4 }), fc.nat(5), rounds, fc.scheduler(), run));
});
