import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parameterOf, parseWeightedList } from './weighted-list.ts';

/** The members of a header without their parameters. */
const weights = (header: string) => parseWeightedList(header).map(({ name, weight }) => ({ name, weight }));

test('members come in their order, in lower case, with their weights', () => {
  assert.deepEqual(weights('text/html, Application/JSON;q=0.5 ,*/* ; Q=0.001,br;q=0,gzip;q=1.000'), [
    { name: 'text/html', weight: 1 },
    { name: 'application/json', weight: 0.5 },
    { name: '*/*', weight: 0.001 },
    { name: 'br', weight: 0 },
    { name: 'gzip', weight: 1 },
  ]);
});

test('parameters other than the weight are ignored', () => {
  assert.deepEqual(weights('a/b;charset=utf-8;q=0.3;v=2, c/d;level=1;quality=0'), [
    { name: 'a/b', weight: 0.3 },
    { name: 'c/d', weight: 1 },
  ]);
});

test('empty members are skipped, as RFC 9110 5.6.1 wants of a recipient', () => {
  assert.deepEqual(weights(''), []);
  assert.deepEqual(weights(' , ,a,,;q=1'), [{ name: 'a', weight: 1 }]);
});

test('a weight that is no q-value drops its member only', () => {
  for (const q of [
    '',
    '"1"',
    '2',
    '-1',
    '1.1',
    '0.1234',
    '1.001',
    '.5',
    'x',
    '1e-1',
    '0x1',
    '+1',
    'NaN',
    '١',
  ]) {
    const names = weights(`a, b;q=${q}, c`).map(({ name }) => name);
    assert.ok(!names.includes('b'), `q=${q}`);
    assert.ok(names.includes('a') && names.includes('c'), `q=${q}`);
  }
});

test('a weight with a second "=" is no q-value', () => {
  assert.deepEqual(weights('a;q=0.5=1'), []);
});

test('commas and semicolons inside a quoted parameter are part of it', () => {
  assert.deepEqual(weights(String.raw`a;x="\",b";q=0.5, c;y="1`), [
    { name: 'a', weight: 0.5 },
    { name: 'c', weight: 1 },
  ]);
  assert.deepEqual(weights('a/b;x="1,c/d;q=1";q=0.5'), [{ name: 'a/b', weight: 0.5 }]);
});

test('parameters are found by their names, with or without quotes', () => {
  const [member, plain] = parseWeightedList(String.raw`a/b; Version="1.0; \"x\"" ;q=0.5;v=2;v=3;flag, c`);
  assert.ok(member !== undefined && plain !== undefined);
  const of = (name: string) => parameterOf(member, name);
  assert.deepEqual(['version', 'q', 'v', 'flag', 'x'].map(of), ['1.0; "x"', '0.5', '2', '', undefined]);
  assert.equal(member.weight, 0.5);
  assert.deepEqual(plain, { name: 'c', weight: 1, parameters: [] });
});

/** Any code units, lone surrogates among them. */
const codeUnits = fc.array(fc.nat(0xffff)).map((units) => String.fromCharCode(...units));
const token = fc.string({ unit: fc.constantFrom(...'abcXYZ09*/+-.'), minLength: 1 });
const weight = fc.oneof(
  fc.record({ text: fc.constantFrom('1', '1.', '1.0', '1.000'), value: fc.constant(1) }),
  fc.nat(999).map((n) => ({ text: `0.${String(n).padStart(3, '0')}`, value: n / 1000 })),
  fc.constant({ text: '0', value: 0 }),
);
const space = fc.constantFrom('', ' ', '\t', '  ');

test('a list that was written is read back', () => {
  const member = fc.record({
    name: token,
    weight: fc.option(weight),
    parameters: fc.array(fc.tuple(token, token)),
    space,
  });
  fc.assert(
    fc.property(fc.array(member), (members) => {
      const header = members.map((each) => {
        const others = each.parameters.map(([key, value]) => `;p${key}=${value}`).join(each.space);
        const q = each.weight === null ? '' : `${each.space};${each.space}q=${each.weight.text}`;
        return `${each.space}${each.name}${others}${q}${each.space}`;
      });
      assert.deepEqual(
        weights(header.join()),
        members.map((each) => ({ name: each.name.toLowerCase(), weight: each.weight?.value ?? 1 })),
      );
    }),
  );
});

test('any text gives proper members and never throws', () => {
  const soup = fc.string({ unit: fc.constantFrom(...'aQq=;,01. "\\/*', '\t', '\u00e9') });
  fc.assert(
    fc.property(fc.oneof(codeUnits, soup), (header) => {
      for (const { name, weight: q } of weights(header)) {
        assert.ok(q >= 0 && q <= 1);
        assert.equal(name, name.trim().toLowerCase());
        assert.ok(name !== '' && !/[,;]/.test(name));
      }
    }),
    { numRuns: 500 },
  );
});
