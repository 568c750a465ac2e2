import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { AttemptLimit, attemptSource } from './attempt-limit.ts';

function limitAt(max: number, maxAddresses = 1_000) {
  const clock = { now: 0 };
  return { clock, limit: new AttemptLimit({ max, windowMs: 100, maxAddresses, now: () => clock.now }) };
}

test('an address waits once its failures reach the limit, until its window ends', () => {
  const { clock, limit } = limitAt(2);
  assert.equal(limit.fail('a'), false);
  assert.equal(limit.waitOf('a'), 0);
  clock.now = 30;
  assert.equal(limit.fail('a'), true);
  assert.equal(limit.waitOf('a'), 70);
  assert.equal(limit.waitOf('b'), 0);
  assert.equal(limit.fail('a'), false);
  clock.now = 99;
  assert.equal(limit.waitOf('a'), 1);
  clock.now = 100;
  assert.equal(limit.waitOf('a'), 0);
  assert.equal(limit.fail('a'), false);
});

test('what is forgiven was no failure', () => {
  const { limit } = limitAt(1);
  limit.fail('a');
  limit.forgive('a');
  limit.forgive('a');
  limit.forgive('unknown');
  assert.equal(limit.waitOf('a'), 0);
  limit.fail('a');
  assert.equal(limit.waitOf('a'), 100);
});

test('no address has more failures in a window than it may, and the table stays in its bounds', () => {
  const step = fc.oneof(
    fc.record({ address: fc.constantFrom('a', 'b', 'c', 'd', 'e') }),
    fc.record({ pause: fc.nat(60) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), fc.integer({ min: 1, max: 3 }), (steps, max) => {
      const { clock, limit } = limitAt(max, 5);
      const failures: { readonly address: string; readonly at: number }[] = [];
      for (const given of steps) {
        if ('pause' in given) {
          clock.now += given.pause;
          continue;
        }
        const { address } = given;
        const wait = limit.waitOf(address);
        const mine = failures.filter((failure) => failure.address === address);
        if (wait === 0) {
          limit.fail(address);
          failures.push({ address, at: clock.now });
          // Windows follow each other, so that two of them may meet.
          const recent = mine.filter(({ at }) => at > clock.now - 100).length + 1;
          assert.ok(recent <= 2 * max, `${recent} of ${max}`);
        } else {
          assert.ok(wait > 0 && wait <= 100);
          assert.ok(mine.filter(({ at }) => at > clock.now - 100).length >= 1);
        }
        assert.ok(limit.size <= 5);
      }
    }),
  );
});

test('the address that failed first is forgotten for a new one', () => {
  const { clock, limit } = limitAt(1, 3);
  for (const address of ['a', 'b', 'c']) {
    limit.fail(address);
    clock.now += 10;
  }
  limit.fail('d');
  assert.equal(limit.size, 3);
  assert.equal(limit.waitOf('a'), 0);
  for (const address of ['b', 'c', 'd']) assert.ok(limit.waitOf(address) > 0, address);
  clock.now += 100;
  limit.fail('e');
  assert.equal(limit.size, 1);
});

test('IPv6 addresses of one network are one source, and a port makes no other one', () => {
  for (const [address, source] of [
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:192.0.2.1', '192.0.2.1'],
    ['::1', '0:0:0:0::/64'],
    ['::', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['2001:db8:0:7::1', '2001:db8:0:7::/64'],
    ['2001:DB8:0:0007:1:2:3:4', '2001:db8:0:7::/64'],
    ['2001:db8:0:8::1', '2001:db8:0:8::/64'],
    ['2001:db8::1:2:3:4:5', '2001:db8:0:1::/64'],
    ['1:2:3:4:5:6:7::', '1:2:3:4::/64'],
    ['192.0.2.1:50123', '192.0.2.1'],
    ['[2001:db8:0:7::1]:50123', '2001:db8:0:7::/64'],
    ['[2001:db8:0:7::1]', '2001:db8:0:7::/64'],
    ['unix:', 'unknown'],
    ['192.0.2.1:x', 'unknown'],
    ['x'.repeat(1_000), 'unknown'],
    [undefined, 'unknown'],
  ] as const) {
    assert.equal(attemptSource(address), source, String(address));
  }
});
