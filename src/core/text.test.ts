import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { anyCharacter } from '../../test/support/random.ts';
import { flagOf } from '../config/options/option.ts';
import { optionKeys } from '../config/options/options.ts';
import {
  describeKind,
  describeValue,
  didYouMean,
  isColoured,
  nearest,
  oneLine,
  paintFor,
  printable,
  printableLines,
  quote,
} from './text.ts';

describe('quote', () => {
  test('a quoted text is one short line without control characters', () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter, maxLength: 200 }), (text) => {
        const quoted = quote(text);
        assert.match(quoted, /^"[^\p{Cc}\p{Zl}\p{Zp}]*"$/u);
        assert.ok(quoted.length < 62 * 6);
      }),
    );
    assert.equal(quote('a"b\n'), '"a\\"b\\n"');
    assert.equal(quote('\u009b31m\u202e'), '"\\u009b31m\\u202e"');
  });

  test('values are named by what they are', () => {
    assert.equal(describeValue('x'), '"x"');
    assert.equal(describeValue(1.5), '1.5');
    assert.equal(describeValue(null), 'null');
    assert.equal(describeValue(10n), '10');
    assert.equal(describeValue([1]), 'an array');
    assert.equal(describeValue({}), 'an object');
    assert.equal(describeValue(Symbol('x')), 'a symbol');
    assert.equal(
      describeValue(() => 1),
      'a function',
    );
    assert.equal(describeKind('x'), 'a text');
    assert.equal(describeKind(1.5), '1.5');
  });

  test('a message of several lines becomes one', () => {
    assert.equal(oneLine(' a\n\tb\r\nc\u2028d '), 'a b c d');
  });

  /** What must not reach a terminal: controls, marks of direction, separators, what has no width. */
  const HOSTILE = [
    ...['\0', '\u0007', '\b', '\u001b', '\u007f', '\u0080', '\u0085', '\u0090', '\u009b', '\u009d', '\u009f'],
    ...['\u061c', '\u200e', '\u200f', '\u202a', '\u202b', '\u202c', '\u202d', '\u202e'],
    ...['\u2066', '\u2067', '\u2068', '\u2069', '\u2028', '\u2029'],
    ...['\u00ad', '\u034f', '\u115f', '\u180e', '\u200b', '\u200c', '\u200d', '\u2060', '\u3164', '\ufeff'],
    ...['\ufff9', '\u{1d173}', '\u{e0001}', '\u{e0041}', '\ud800', '\udc00'],
  ];

  test('nothing that a terminal obeys or that hides text is printable, and what people write is', () => {
    for (const character of HOSTILE) {
      const shown = printable(`a${character}b`);
      assert.match(shown, /^a(?:\\u[0-9a-f]{4}){1,2}b$/, shown);
      assert.equal(JSON.parse(`"${shown}"`), `a${character}b`);
      assert.equal(printableLines(`a${character}b`), shown);
    }
    assert.equal(printable('a\r\n\tb'), 'a\\r\\n\\tb');
    for (const text of [
      'Zoë',
      'Łódź',
      '李小龍',
      'עברית',
      'العربية',
      'हिन्दी',
      '❤️ 😀 👍🏽',
      'a\\u009bb',
      '„“ – … €',
    ]) {
      assert.equal(printable(text), text);
    }
  });

  test('a text of several lines keeps its line ends and tabs, and no lone return', () => {
    assert.equal(printableLines('a\n\tb\r\nc\rd\u202e\n'), 'a\n\tb\r\nc\\rd\\u202e\n');
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter }), (text) => {
        assert.doesNotMatch(printableLines(text), /(?![\r\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]|\r(?!\n)/u);
        const json = JSON.stringify({ [text]: text });
        assert.deepEqual(JSON.parse(printableLines(json)), JSON.parse(json));
      }),
    );
  });
});

describe('suggest', () => {
  const flags = optionKeys.map(flagOf);

  test('the nearest candidate is suggested', () => {
    assert.equal(nearest('--rest-prot', flags), '--rest-port');
    assert.equal(nearest('--webhook-secert', flags), '--webhook-secret');
    assert.equal(nearest('--managment-port', flags), '--management-port');
    assert.equal(nearest('--REST-PORT', flags), '--rest-port');
    assert.equal(nearest('hlep', ['help']), 'help');
    assert.equal(nearest('serv', ['serve', 'help']), 'serve');
  });

  test('nothing is suggested when nothing is near', () => {
    assert.equal(nearest('--verbose', flags), undefined);
    assert.equal(nearest('', flags), undefined);
    assert.equal(nearest('x', []), undefined);
    assert.equal(didYouMean('--verbose', flags), '');
  });

  test('one edit away from a flag is always close enough', () => {
    const edit = fc.record({
      flag: fc.constantFrom(...flags),
      at: fc.nat(),
      kind: fc.constantFrom('remove', 'insert', 'replace', 'swap'),
    });
    const apply = ({ flag, at, kind }: { flag: string; at: number; kind: string }): string => {
      const letters = [...flag];
      const index = at % (letters.length - 1);
      const [first = '', second = ''] = letters.slice(index, index + 2);
      if (kind === 'remove') letters.splice(index, 1);
      else if (kind === 'insert') letters.splice(index, 0, '0');
      else if (kind === 'replace') letters.splice(index, 1, '0');
      else letters.splice(index, 2, second, first);
      return letters.join('');
    };
    fc.assert(
      fc.property(edit, (given) => {
        // Another flag may be as near (--rest-port and --host-port would be), so only that there is one.
        assert.notEqual(nearest(apply(given), flags), undefined);
        assert.equal(nearest(apply(given), [given.flag]), given.flag);
      }),
    );
  });
});

describe('paint', () => {
  test('FORCE_COLOR decides before NO_COLOR, and that before the stream', () => {
    const terminal = { isTTY: true };
    for (const [env, onTerminal, elsewhere] of [
      [{}, true, false],
      [{ TERM: 'dumb' }, false, false],
      [{ NO_COLOR: '1' }, false, false],
      [{ NO_COLOR: '' }, true, false],
      [{ FORCE_COLOR: '1' }, true, true],
      [{ FORCE_COLOR: '', NO_COLOR: '1' }, true, true],
      [{ FORCE_COLOR: '0' }, false, false],
      [{ FORCE_COLOR: 'false' }, false, false],
    ] as const) {
      assert.equal(isColoured(terminal, env), onTerminal, JSON.stringify(env));
      assert.equal(isColoured({}, env), elsewhere, JSON.stringify(env));
    }
    assert.equal(paintFor(terminal, {})('bold', 'x'), '\x1b[1mx\x1b[22m');
    assert.equal(paintFor({}, {})('bold', 'x'), 'x');
  });
});
