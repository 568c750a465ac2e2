import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isColoured, paintFor } from './paint.ts';

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
