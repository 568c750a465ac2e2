import assert from 'node:assert/strict';
import { isIPv4 } from 'node:net';
import { test } from 'node:test';
import fc from 'fast-check';
import { isPrivateAddress } from './private-address.ts';

test('the first and the last address of each network, and their neighbours outside', () => {
  for (const [first, last, before, after] of [
    ['0.0.0.0', '0.255.255.255', undefined, '1.0.0.0'],
    ['10.0.0.0', '10.255.255.255', '9.255.255.255', '11.0.0.0'],
    ['100.64.0.0', '100.127.255.255', '100.63.255.255', '100.128.0.0'],
    ['127.0.0.0', '127.255.255.255', '126.255.255.255', '128.0.0.0'],
    ['169.254.0.0', '169.254.255.255', '169.253.255.255', '169.255.0.0'],
    ['172.16.0.0', '172.31.255.255', '172.15.255.255', '172.32.0.0'],
    ['192.168.0.0', '192.168.255.255', '192.167.255.255', '192.169.0.0'],
    ['198.18.0.0', '198.19.255.255', '198.17.255.255', '198.20.0.0'],
    ['224.0.0.0', '255.255.255.255', '223.255.255.255', undefined],
    ['fc00::', 'fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'fbff::', 'fe00::'],
    ['fe80::', 'feff:ffff::', undefined, undefined],
    ['ff00::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', undefined, undefined],
    ['::', '::1', undefined, '::2:0:0'],
    ['2001:db8::', '2001:db8:ffff::', '2001:db7::', '2001:db9::'],
  ] as const) {
    assert.ok(isPrivateAddress(first), first);
    assert.ok(isPrivateAddress(last), last);
    for (const outside of [before, after]) {
      if (outside !== undefined) assert.ok(!isPrivateAddress(outside), outside);
    }
  }
});

test('public addresses', () => {
  for (const address of [
    '8.8.8.8',
    '93.184.216.34',
    '2606:4700::1111',
    '2a00:1450:4001::200e',
    '::ffff:8.8.8.8',
  ]) {
    assert.ok(!isPrivateAddress(address), address);
  }
});

/** An address as a whole number, and whether that is private, by arithmetic alone. */
const octets = fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255));
const near = fc.oneof(
  octets,
  fc.tuple(
    fc.constantFrom(0, 10, 100, 127, 169, 172, 192, 198, 203, 224, 240, 255),
    fc.constantFrom(0, 2, 15, 16, 18, 19, 20, 31, 32, 51, 63, 64, 88, 127, 128, 168, 254),
    fc.constantFrom(0, 2, 99, 100, 113, 255),
    fc.nat(255),
  ),
);

function byArithmetic([a, b, c]: readonly [number, number, number, number]): boolean {
  if ([0, 10, 127].includes(a) || a >= 224) return true;
  if (a === 100) return b >= 64 && b < 128;
  if (a === 169) return b === 254;
  if (a === 172) return b >= 16 && b < 32;
  if (a === 192) return b === 168 || (b === 0 && (c === 0 || c === 2)) || (b === 88 && c === 99);
  if (a === 198) return b === 18 || b === 19 || (b === 51 && c === 100);
  return a === 203 && b === 0 && c === 113;
}

const hex = (high: number, low: number) => ((high << 8) | low).toString(16);

test('an IPv4 address is judged alike in all of its clothes', () => {
  fc.assert(
    fc.property(near, (address) => {
      const [a, b, c, d] = address;
      const plain = address.join('.');
      const expected = byArithmetic(address);
      assert.ok(isIPv4(plain));
      assert.equal(isPrivateAddress(plain), expected, plain);
      for (const mapped of [
        `::ffff:${plain}`,
        `::FFFF:${plain}`,
        `::ffff:${hex(a, b)}:${hex(c, d)}`,
        `0:0:0:0:0:ffff:${hex(a, b)}:${hex(c, d)}`,
        `::ffff:${plain}%eth0`,
      ]) {
        assert.equal(isPrivateAddress(mapped), expected, mapped);
      }
      // A gateway that translates would reach the machine, so none of these goes out.
      for (const carried of [`::${plain}`, `64:ff9b::${plain}`, `2002:${hex(a, b)}:${hex(c, d)}::1`]) {
        assert.ok(isPrivateAddress(carried), carried);
      }
    }),
    { numRuns: 2_000 },
  );
});

test('an IPv6 zone changes nothing, and any other text counts as private', () => {
  assert.ok(isPrivateAddress('fe80::1%eth0'));
  fc.assert(
    fc.property(fc.string(), (text) => {
      fc.pre(!/[0-9a-f]/i.test(text));
      assert.ok(text === '::' || isPrivateAddress(text), text);
    }),
  );
  for (const text of ['', 'localhost', '127.1', '0x7f000001', '2130706433', '127.0.0.1 ', '[::1]']) {
    assert.ok(isPrivateAddress(text), text);
  }
});
