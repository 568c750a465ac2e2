import assert from 'node:assert/strict';
import { test } from 'node:test';
import { drawBars } from './bars.ts';
import { drawLines } from './lines.ts';
import { findingLine, isReached, tableLines } from './markdown.ts';
import { summaryOf, withSection } from './page.ts';

const BEGIN = '<!-- bench: begin (written by npm run bench -- --write) -->';
const END = '<!-- bench: end -->';

test('a report replaces what stands between the marks, and nothing else', () => {
  const page = `before\n${BEGIN}\n\nold\n\n${END}\nafter\n`;
  const written = withSection(page, 'new $& text');
  assert.equal(written, `before\n${BEGIN}\n\nnew $& text\n\n${END}\nafter\n`);
  assert.equal(withSection(written, 'new $& text'), written);
});

test('a page without the marks is left alone', () => {
  assert.throws(() => withSection('no marks', 'new'), /needs the lines/);
  assert.throws(() => withSection(`${END}\n${BEGIN}`, 'new'), /needs the lines/);
});

test('a target says whether it was reached', () => {
  assert.ok(isReached(2, { atLeast: 2 }));
  assert.ok(!isReached(1.99, { atLeast: 2 }));
  assert.ok(isReached(20, { atMost: 20 }));
  assert.ok(!isReached(Number.NaN, { atMost: 20 }));
  const line = findingLine({
    what: 'us / them',
    value: 1.5,
    unit: 'x',
    spread: [1, 2],
    target: { atLeast: 2 },
  });
  assert.equal(line, '- us / them: 1.50x (1.00x to 2.00x), at least 2.00x: **NOT reached**');
});

test('a summary has every ratio to a peer once, and each target that was missed', () => {
  const target = { atMost: 1 };
  const summary = summaryOf([
    {
      title: 'REST: a page (x)',
      findings: [
        { what: 'Portico / Express', value: 2, unit: 'x', spread: [1, 3], target: { atLeast: 3 } },
        { what: 'CPU per message of Portico / Yoga', value: 0.5, unit: 'x' },
        { what: 'p99 of Portico / of the best peer, Express', value: 1.1, unit: 'x', target },
        { what: 'creates: paced p99 of Portico / of the best peer, Express', value: 0.9, unit: 'x', target },
        { what: 'Portico: p99 of concurrent requests', value: 12, unit: 'ms', target: { atMost: 20 } },
      ],
    },
    { title: 'Itself', findings: [{ what: 'a token / nothing', value: 1, unit: 'x' }] },
    { title: 'Broken', findings: undefined },
  ]);
  const ratios =
    '| [REST: a page (x)](performance/report.md#rest-a-page-x) | Express 2.00x; CPU per message of Portico / Yoga 0.50x | 1.10x | 0.90x |';
  assert.ok(summary.includes(`${ratios}\n| [Broken](performance/report.md#broken) | the row failed | | |`));
  const missed = summary.split('### Missed targets')[1]?.match(/^\| REST.*$/gm);
  assert.deepEqual(missed, [
    '| REST: a page (x) | Portico / Express | 2.00x | 1.00x-3.00x | >= 3.00x |',
    '| REST: a page (x) | p99 of Portico / of the best peer, Express | 1.10x |  | <= 1.00x |',
  ]);
});

test('the columns of a table stand under each other', () => {
  const lines = tableLines({
    head: ['', 'n'],
    lines: [
      ['long name', '1'],
      ['x', '1,000'],
    ],
  });
  assert.equal(new Set(lines.map((line) => line.length)).size, 1);
});

test('plots hold each label and each value, and no markup of a label', () => {
  const values = [1_000, 1_200];
  const bars = drawBars({
    kind: 'bars',
    file: 'f',
    title: 'T',
    unit: 'u',
    bars: [{ label: '<Us>', values }],
  });
  assert.match(bars, /&#60;Us&#62;/);
  assert.match(bars, /1,100/);
  const sizes = { label: 'users', values: [1_000, 1_000_000] };
  const lines = [{ label: 'l', values: [0.5, 50] }];
  const plot = drawLines({ kind: 'lines', file: 'f', title: 'T', unit: 'u', x: sizes, lines });
  assert.match(plot, /1,000,000/);
  for (const svg of [bars, plot]) assert.doesNotMatch(svg, /NaN|Infinity|undefined/);
});
