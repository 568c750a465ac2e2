import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HealthRegistry } from './health.ts';

const outcome = async (check: () => unknown) => {
  const indicator = { name: 'mine', check: check as () => number };
  return (await new HealthRegistry([indicator]).check()).components.mine;
};

test('0 is UP; any other code is DOWN and among the details', async () => {
  assert.deepEqual(await outcome(() => 0), { status: 'UP' });
  assert.deepEqual(await outcome(() => Promise.resolve(0)), { status: 'UP' });
  for (const code of [1, -1, 2.5, 137]) {
    assert.deepEqual(await outcome(() => code), { status: 'DOWN', details: { code } });
    assert.deepEqual(await outcome(async () => code), { status: 'DOWN', details: { code } });
  }
});

test('no number is no health', async () => {
  for (const answer of [undefined, null, '0', false, {}, Number.NaN, Infinity, 0n]) {
    for (const check of [() => answer, () => Promise.resolve(answer)]) {
      const result = await outcome(check);
      assert.equal(result?.status, 'DOWN');
      assert.match(String(result?.details?.error), /^TypeError: the check returned /);
    }
  }
});

test('a check that throws or rejects is DOWN with the reason', async () => {
  const expected = { status: 'DOWN', details: { error: 'RangeError: full' } };
  const fail = () => {
    throw new RangeError('full');
  };
  assert.deepEqual(await outcome(fail), expected);
  assert.deepEqual(await outcome(async () => fail()), expected);
});

test('the check gets the signal that ends with its time', async () => {
  let reason: unknown;
  const check = (signal: AbortSignal) => {
    signal.addEventListener('abort', () => {
      reason = signal.reason;
    });
    return new Promise<number>(() => {});
  };
  const { status } = await new HealthRegistry([{ name: 'slow', check }], { timeoutMs: 5 }).check();
  assert.equal(status, 'DOWN');
  assert.equal((reason as DOMException).name, 'TimeoutError');
});

test('a check may tell more than a code', async () => {
  const result = { status: 'OUT_OF_SERVICE', details: { why: 'maintenance' } };
  assert.deepEqual(await outcome(() => result), result);
  assert.deepEqual(await outcome(async () => result), result);
  const parts = { components: { a: { status: 'UP' }, b: { status: 'DOWN' } } };
  assert.deepEqual(await outcome(() => parts), { status: 'DOWN', ...parts });
  const { details } = (await outcome(() => ({ status: 'fine' }))) ?? {};
  assert.match(String(details?.error), /^TypeError: the check returned none of UP, DOWN/);
});
