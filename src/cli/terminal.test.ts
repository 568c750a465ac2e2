import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type Column, cell, renderTable, showProgress, widthOf } from './terminal.ts';

describe('progress', () => {
  function screen(isTTY: boolean) {
    let written = '';
    const stderr = { isTTY, write: (text: string) => (written += text) };
    return { stderr, env: { NO_COLOR: '1' }, text: () => written };
  }

  test('on a terminal one line changes, not more often than people can read, and goes away', () => {
    const terminal = screen(true);
    let at = 0;
    {
      using progress = showProgress(terminal, 'Replaying', 2_000, () => at);
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
      using progress = showProgress(file, 'Counting', undefined, () => at);
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
});

describe('table', () => {
  interface Row {
    readonly id: string;
    readonly name: string;
    readonly count: number;
  }
  const columns: readonly Column<Row>[] = [
    { title: 'ID', text: ({ id }) => id },
    { title: 'NAME', text: ({ name }) => name, least: 4 },
    { title: 'N', text: ({ count }) => String(count), right: true, dispensable: 1 },
  ];

  test('columns are as wide as what stands in them', () => {
    const rows = [
      { id: 'a', name: 'long name', count: 7 },
      { id: 'bbb', name: 'x', count: 100 },
    ];
    assert.deepEqual(renderTable(columns, rows), [
      'ID   NAME         N',
      'a    long name    7',
      'bbb  x          100',
    ]);
    assert.deepEqual(renderTable(columns, rows, 16), [
      'ID   NAME      N',
      'a    long …    7',
      'bbb  x       100',
    ]);
    assert.deepEqual(renderTable(columns, rows, 12), ['ID   NAME', 'a    long n…', 'bbb  x']);
  });

  test('wide and combining characters keep the columns straight', () => {
    assert.equal(widthOf('漢字'), 4);
    assert.equal(widthOf('e\u0301'), 1);
    assert.equal(widthOf('😀'), 2);
    assert.equal(cell('漢字漢字', 6), '漢字…');
    const rows = ['漢字', 'ab'].map((name) => ({ id: 'x', name, count: 1 }));
    assert.deepEqual(renderTable(columns, rows), ['ID  NAME  N', 'x   漢字  1', 'x   ab    1']);
  });

  test('nothing that a terminal obeys gets into a cell', () => {
    assert.equal(cell('a\x1b[2J\n\u202eb'), 'a\\u001b[2J\\n\\u202eb');
  });

  test('no line is wider than there is room, as long as the narrowest columns fit', () => {
    const row = fc.record({
      id: fc.string({ maxLength: 8 }),
      name: fc.string({ unit: 'grapheme', maxLength: 40 }),
      count: fc.nat(),
    });
    fc.assert(
      fc.property(fc.array(row), fc.integer({ min: 22, max: 90 }), (rows, width) => {
        const lines = renderTable(columns, rows, width);
        assert.equal(lines.length, rows.length + 1);
        for (const line of lines) assert.ok(widthOf(line) <= width, line);
      }),
    );
  });
});
