import assert from 'node:assert/strict';
import { test } from 'node:test';
import { plainly } from '../../core/paint.ts';
import { showProgress } from './progress.ts';

function screen(isTTY: boolean) {
  let written = '';
  return { isTTY, write: (text: string) => (written += text), text: () => written };
}

test('on a terminal one line changes, not more often than people can read, and goes away', () => {
  const terminal = screen(true);
  let at = 0;
  {
    using progress = showProgress('Replaying', 2_000, terminal, () => at, plainly);
    progress.update(100);
    at = 50;
    progress.update(200);
    at = 10_000;
    progress.update(500);
  }
  assert.deepEqual(terminal.text().split('\r\x1b[K'), [
    '',
    'Replaying 100 of 2,000 (5 %)',
    'Replaying 500 of 2,000 (25 %, 30s left)',
    '',
  ]);
});

test('elsewhere there is a line every three seconds, and none for what is short', () => {
  const file = screen(false);
  let at = 0;
  {
    using progress = showProgress('Counting', undefined, file, () => at, plainly);
    for (const [time, done] of [
      [0, 1],
      [2_999, 10],
      [3_000, 1_000],
      [5_999, 2_000],
      [6_000, 3_000],
    ] as const) {
      at = time;
      progress.update(done);
    }
  }
  assert.equal(file.text(), 'Counting 1,000\nCounting 3,000\n');
});
