import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { cell, widthOf } from './cells.ts';
import { type Column, renderTable } from './table.ts';

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
