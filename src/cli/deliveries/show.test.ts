import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { prettyJson } from './show.ts';

test('numbers keep their digits', () => {
  assert.equal(
    prettyJson('{"n":[12345678901234567890,1.10,-0,1e400]}'),
    '{\n  "n": [\n    12345678901234567890,\n    1.10,\n    -0,\n    1e400\n  ]\n}',
  );
});

test('nothing in it moves the cursor of a terminal or turns its text', () => {
  const pretty = prettyJson(JSON.stringify({ '\u009b': '\u001b[2J \u202e \u007f é 😀' }));
  assert.equal(pretty, '{\n  "\\u009b": "\\u001b[2J \\u202e \\u007f é 😀"\n}');
});

test('it is the same JSON', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      assert.deepEqual(JSON.parse(prettyJson(JSON.stringify(value))), JSON.parse(JSON.stringify(value)));
    }),
  );
});
