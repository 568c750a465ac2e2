import assert from 'node:assert/strict';
import { isUtf8 } from 'node:buffer';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { HttpProblem } from '../problem.ts';
import { LIMITS } from '../server/limits.ts';
import { parseJsonBody, parseJsonText } from './parse-body.ts';

describe('json body', () => {
  /** The code of the 400 that a body is refused with; undefined when it is accepted. Anything else fails. */
  function refusal(body: Uint8Array): string | undefined {
    try {
      parseJsonBody(body);
      return undefined;
    } catch (error) {
      assert.ok(error instanceof HttpProblem, `threw ${error}`);
      assert.equal(error.status, 400);
      return error.code;
    }
  }

  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;

  /** A JSON string for `text` with some of its code units behind an escape, in lower or upper case. */
  const spelling = (text: string) =>
    fc
      .array(fc.constantFrom('plain', 'lower', 'upper'), { minLength: text.length, maxLength: text.length })
      .map((ways) => {
        const units = text.split('').map((unit, i) => {
          if (ways[i] === 'plain') return unit;
          return ways[i] === 'lower' ? escaped(unit) : `\\u${escaped(unit).slice(2).toUpperCase()}`;
        });
        return `"${units.join('')}"`;
      });

  /** Text made of what could confuse a scanner of brackets, as a JSON string. */
  const confusing = fc
    .string({ unit: fc.constantFrom('[', ']', '{', '}', '"', '\\', '/', '\n', '\u2028', 'a') })
    .map((text) => JSON.stringify(text));

  /** JSON that is nested exactly `depth` levels, with confusing text beside each level. */
  const nested = (depth: number, innermost: fc.Arbitrary<string> = fc.constant('"leaf"')) =>
    fc
      .tuple(innermost, fc.array(fc.tuple(fc.boolean(), confusing), { minLength: depth, maxLength: depth }))
      .map(([inner, levels]) =>
        levels.reduce<string>(
          (json, [isArray, text]) => (isArray ? `[${text}, ${json} ,${text}]` : `{${text} : ${json}}`),
          inner,
        ),
      );

  /** As the standard parser reads it, which is tested elsewhere; `-0` and doubled keys included. */
  const readStandard = (text: string): unknown => JSON.parse(text);

  test('every JSON value comes back, however it is spaced and escaped', () => {
    const spaces = fc.constantFrom(0, 2, '\t');
    fc.assert(
      fc.property(fc.jsonValue({ depthSize: 'medium' }), spaces, fc.boolean(), (value, space, isEscaped) => {
        const plain = JSON.stringify(value, null, space);
        fc.pre(!plain.includes('"__proto__":'));
        const text = isEscaped ? plain.replace(/[^\u0020-\u007e\s]/g, escaped) : plain;
        assert.deepEqual(parseJsonBody(Buffer.from(text)), readStandard(plain));
        assert.deepEqual(parseJsonText(text), readStandard(plain));
      }),
    );
  });

  test('what the standard parser refuses is malformed', () => {
    for (const text of [
      '',
      ' ',
      '{',
      '{"a":1,}',
      "{'a':1}",
      '01',
      '1 2',
      'NaN',
      '"\t"',
      '[1]]',
      'undefined',
    ]) {
      assert.equal(refusal(Buffer.from(text)), 'MALFORMED_JSON', text);
    }
  });

  test('a refusal says nothing about the body', () => {
    assert.throws(
      () => parseJsonBody(Buffer.from('{"password":hunter2}')),
      (error: Error) => !error.message.includes('hunter2'),
    );
  });

  test(`${LIMITS.jsonDepth} levels pass, whatever brackets stand inside strings`, () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: LIMITS.jsonDepth }).chain(nested), (text) => {
        assert.deepEqual(parseJsonBody(Buffer.from(text)), readStandard(text));
      }),
    );
    fc.assert(
      fc.property(nested(LIMITS.jsonDepth), (text) => {
        assert.equal(refusal(Buffer.from(text)), undefined);
      }),
    );
  });

  test('one level more is too deep', () => {
    fc.assert(
      fc.property(nested(LIMITS.jsonDepth + 1), (text) => {
        assert.equal(refusal(Buffer.from(text)), 'TOO_DEEP');
      }),
    );
  });

  test('depth is not width: closed brackets do not count', () => {
    const wide = `[${Array.from({ length: 1_000 }, () => '{"a":[]}').join()}]`;
    assert.equal(refusal(Buffer.from(wide)), undefined);
  });

  test('a million brackets are refused before the parser sees them', () => {
    assert.equal(refusal(Buffer.from('['.repeat(1_000_000))), 'TOO_DEEP');
    assert.equal(refusal(Buffer.from('{"a":'.repeat(1_000_000))), 'TOO_DEEP');
  });

  test('the key __proto__ is refused at any depth, spelled out or behind escapes', () => {
    const withKey = spelling('__proto__').map((key) => `{"a":1,${key}:{"admin":true}}`);
    const depth = fc.integer({ min: 0, max: LIMITS.jsonDepth - 2 });
    fc.assert(
      fc.property(
        depth.chain((levels) => nested(levels, withKey)),
        (text) => {
          assert.equal(refusal(Buffer.from(text)), 'PROTO_KEY');
          assert.throws(() => parseJsonText(text), { code: 'PROTO_KEY', status: 400 });
        },
      ),
    );
  });

  test('__proto__ as a value, or as a part of a key, is accepted', () => {
    fc.assert(
      fc.property(
        spelling('__proto__'),
        spelling('x__proto__'),
        spelling('__proto_'),
        (value, longer, shorter) => {
          const text = `{"a":${value},${longer}:[${value}],${shorter}:null}`;
          assert.deepEqual(parseJsonBody(Buffer.from(text)), readStandard(text));
        },
      ),
    );
    assert.equal(refusal(Buffer.from('"__proto__"')), undefined);
  });

  test('a refused key has left no trace on other objects', () => {
    refusal(Buffer.from('{"__proto__":{"polluted":true}}'));
    assert.equal(({} as { polluted?: unknown }).polluted, undefined);
  });

  test('a byte sequence that is no UTF-8 is refused, wherever it stands', () => {
    const wrong = fc.constantFrom(
      ...[
        [0x80], // a continuation of nothing
        [0xc3], // cut off
        [0xe2, 0x82],
        [0xf0, 0x9f, 0x98],
        [0xc0, 0xaf], // overlong
        [0xe0, 0x80, 0xaf],
        [0xed, 0xa0, 0x80], // a surrogate
        [0xf4, 0x90, 0x80, 0x80], // beyond U+10FFFF
        [0xff],
      ].map((bytes) => Buffer.from(bytes)),
    );
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme' }),
        wrong,
        fc.string({ unit: 'grapheme' }),
        (head, bytes, tail) => {
          const quoted = [JSON.stringify(head).slice(0, -1), bytes, JSON.stringify(tail).slice(1)];
          assert.equal(refusal(Buffer.concat(quoted.map((part) => Buffer.from(part)))), 'INVALID_UTF8');
        },
      ),
    );
  });

  test('any bytes are refused or read as the standard parser reads them', () => {
    const quoted = fc
      .uint8Array({ maxLength: 8 })
      .map((bytes) => Buffer.concat([Buffer.from('"'), bytes, Buffer.from('"')]));
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 12 }), quoted), (body) => {
        const code = refusal(body);
        assert.equal(code === 'INVALID_UTF8', !isUtf8(body));
        if (code === undefined)
          assert.deepEqual(parseJsonBody(body), readStandard(Buffer.from(body).toString()));
      }),
      { numRuns: 500 },
    );
  });

  test('a document that is cut off at any byte is refused with a 400 or is a whole value by itself', () => {
    const cut = (text: string, isClosed: boolean) => {
      const body = Buffer.from(text);
      for (let end = 0; end < body.length; end++) {
        const code = refusal(body.subarray(0, end));
        if (isClosed) assert.ok(code !== undefined, `accepted ${body.subarray(0, end)}`);
      }
    };
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        cut(JSON.stringify(value), typeof value === 'object' && value !== null);
        cut(JSON.stringify({ event: 'grüße €😀', data: value }), true);
      }),
      { numRuns: 50 },
    );
  });

  test('one byte order mark before the value is skipped, a second one and one alone are refused', () => {
    const mark = Buffer.from([0xef, 0xbb, 0xbf]);
    assert.deepEqual(parseJsonBody(Buffer.concat([mark, Buffer.from('{"a":1}')])), { a: 1 });
    assert.equal(refusal(Buffer.concat([mark, mark, Buffer.from('{"a":1}')])), 'MALFORMED_JSON');
    assert.equal(refusal(mark), 'MALFORMED_JSON');
    assert.equal(parseJsonBody(Buffer.from('"\ufeffa"')), '\ufeffa');
    // Text was decoded by somebody else, who has taken the mark away already.
    assert.throws(() => parseJsonText('\ufeff{}'), { code: 'MALFORMED_JSON' });
  });
});
