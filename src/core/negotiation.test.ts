import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  handlesStrictly,
  parameterOf,
  parseAccept,
  parseWeightedList,
  preferences,
  prefersHtml,
} from './negotiation.ts';

describe('accept', () => {
  test('the most specific range decides', () => {
    const wanted = parseAccept('*/*;q=0.1, application/*;q=0.5, application/json;q=0, text/html');
    assert.deepEqual(wanted('application/json'), { weight: 0, specificity: 2 });
    assert.deepEqual(wanted('application/xml'), { weight: 0.5, specificity: 1 });
    assert.deepEqual(wanted('image/png'), { weight: 0.1, specificity: 0 });
    assert.deepEqual(wanted('text/html'), { weight: 1, specificity: 2 });
    assert.deepEqual(parseAccept('')('text/html'), { weight: 0, specificity: 0 });
  });

  test('of equal ranges the heaviest counts', () => {
    for (const accept of ['a/b;q=0.2, a/b;q=0.7', 'a/b;q=0.7, a/b;q=0.2']) {
      assert.equal(parseAccept(accept)('a/b').weight, 0.7);
    }
  });

  test('a page has to be wanted more than anything else', () => {
    const others = ['application/json', 'application/x+json'];
    for (const accept of [
      'text/html',
      'text/*',
      'text/html, */*;q=0.8',
      'application/json;q=0.9,text/html',
    ]) {
      assert.equal(prefersHtml(accept, others), true, accept);
    }
    for (const accept of [
      undefined,
      '',
      '*/*',
      'application/json, text/html',
      'text/html;q=0',
      'image/png',
    ]) {
      assert.equal(prefersHtml(accept, others), false, String(accept));
    }
    assert.equal(prefersHtml('text/html;q=0.5, application/x+json;q=0.5', others), false);
  });

  test('any header gives weights from 0 to 1', () => {
    const soup = fc.string({ unit: fc.constantFrom(...'aQq=;,01. "\\/*') });
    fc.assert(
      fc.property(soup, fc.constantFrom('a/a', '*/*', 'text/html'), (accept, type) => {
        const { weight } = parseAccept(accept)(type);
        assert.ok(weight >= 0 && weight <= 1);
      }),
    );
  });
});

describe('weighted list', () => {
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
});

describe('prefer', () => {
  const preference = (prefer: string | undefined, name: string) =>
    preferences({ headers: { prefer } }).get(name);

  test('a preference is read as RFC 7240 writes it', () => {
    assert.equal(preference('handling=strict', 'handling'), 'strict');
    assert.equal(preference('return=minimal, Handling = "strict" ; x=y', 'handling'), 'strict');
    assert.equal(preference('respond-async', 'respond-async'), '');
    assert.equal(preference('note="a, handling=strict"', 'handling'), undefined);
    assert.equal(preference('a="x\\"y"', 'a'), 'x"y');
    assert.equal(preference('count=1, count=2', 'count'), '1', 'the first one counts');
    assert.equal(preference('', 'handling'), undefined);
    assert.equal(preference(undefined, 'handling'), undefined);
  });

  test('strict handling is asked for in whatever case', () => {
    assert.equal(handlesStrictly({ headers: { prefer: 'handling=STRICT' } }), true);
    assert.equal(handlesStrictly({ headers: { prefer: 'handling=lenient' } }), false);
    assert.equal(handlesStrictly({ headers: {} }), false);
  });
});
