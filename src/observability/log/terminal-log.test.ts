import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { paintFor, plainly } from '../../core/paint.ts';
import { readable } from './terminal-log.ts';

const TIME = new Date(2026, 10, 23, 9, 8, 7, 65).toISOString();
const lineOf = (entry: object) => `${JSON.stringify({ level: 'info', time: TIME, ...entry })}\n`;

test('an entry is a line with its time, level, logger, message and fields', () => {
  assert.equal(readable(lineOf({ msg: 'stopped' }), plainly), '[09:08:07.065] INFO: stopped\n');
  assert.equal(
    readable(lineOf({ level: 'warn', logger: 'rest', n: 1, o: { a: [true] }, msg: 'late' }), plainly),
    '[09:08:07.065] WARN: rest: late {"n":1,"o":{"a":[true]}}\n',
  );
  const coloured = readable(lineOf({ n: 1, msg: 'm' }), paintFor({ isTTY: true }, {}));
  assert.equal(coloured, '[09:08:07.065] \x1b[32mINFO\x1b[39m: \x1b[36mm\x1b[39m \x1b[90m{"n":1}\x1b[39m\n');
});

test('an error has its stack below the line, and what else is known of it among the fields', () => {
  const err = { type: 'Error', message: 'no', stack: 'Error: no\n    at f (x.ts:1:2)', code: 'E' };
  assert.equal(
    readable(lineOf({ level: 'error', err, n: 1, msg: 'failed' }), plainly),
    '[09:08:07.065] ERROR: failed {"n":1,"err":{"code":"E"}}\n    Error: no\n        at f (x.ts:1:2)\n',
  );
  assert.equal(
    readable(lineOf({ err: 'text', msg: 'm' }), plainly),
    '[09:08:07.065] INFO: m {"err":"text"}\n',
  );
});

test('whatever is in a line, nothing of it is obeyed', () => {
  const hostile = '\x1b[2J\x9b31m\u202e\r\n\u2028';
  const err = { type: hostile, message: hostile, stack: `Error: ${hostile}`, [hostile]: hostile };
  const lines = [
    lineOf({ level: hostile, logger: hostile, msg: hostile, [hostile]: hostile, err }),
    lineOf({ time: hostile, msg: 'm' }),
    `${hostile}\n`,
    `"${hostile}"\n`,
    'null\n',
  ];
  for (const line of lines) assert.doesNotMatch(readable(line, plainly), /[^\n\x20-\x7e]/);
  fc.assert(
    fc.property(fc.dictionary(fc.string({ unit: 'binary' }), fc.anything()), (entry) => {
      const text = readable(lineOf(JSON.parse(JSON.stringify(entry) ?? '{}')), plainly);
      assert.doesNotMatch(text, /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
    }),
  );
});
