import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { checks } from './catalogue.ts';
import { configurationChecks } from './configuration-checks.ts';

const ROOT = join(import.meta.dirname, '../..');
const page = await readFile(join(ROOT, 'docs/CONTRACT.md'), 'utf8');
/** The headings of the contract, as links have them. */
const headings = [...page.matchAll(/^## (.+)$/gm)].map(([, title = '']) =>
  title.toLowerCase().replaceAll(' ', '-'),
);
const rows = [...checks, ...configurationChecks];

test('every check has an id of its own', () => {
  const ids = rows.map(({ id }) => id);
  assert.equal(new Set(ids).size, ids.length, ids.filter((id, index) => ids.indexOf(id) !== index).join(' '));
  for (const id of ids) assert.match(id, /^(REST|GQL|MGMT|HOOK|ALL|CFG)-\d{2}$/);
});

// A check that is removed, renamed, weakened to SHOULD or moved to another heading must be a decision
// that somebody sees: ids.txt changes with it.
test('ids, levels and headings are as frozen in ids.txt', async () => {
  const frozen = (await readFile(new URL('ids.txt', import.meta.url), 'utf8')).trim().split('\n');
  const now = rows.map(({ id, level, heading }) => `${id} ${level} ${heading}`);
  const lost = frozen.filter((row) => !now.includes(row));
  const added = now.filter((row) => !frozen.includes(row));
  assert.deepEqual(lost, [], 'these rows of ids.txt are gone or changed');
  assert.deepEqual(added, [], 'these are new: add them to ids.txt');
});

test('every heading of the contract is cited by a MUST, and no check cites one that is not there', () => {
  assert.ok(headings.length > 10, 'the headings are found');
  for (const heading of headings) {
    assert.ok(
      rows.some((row) => row.heading === heading && row.level === 'MUST') || heading === 'limits',
      `no MUST cites ${heading}`,
    );
  }
  for (const { id, heading } of rows) assert.ok(headings.includes(heading), `${id} cites ${heading}`);
});

test('whatever cites the contract cites a heading that is there', async () => {
  let cited = 0;
  for (const file of globSync(['{src,packages}/**/*.{ts,tsx}', 'test/**/*.ts', '*.md', 'docs/**/*.md'], {
    cwd: ROOT,
  })) {
    const text = await readFile(join(ROOT, file), 'utf8');
    for (const [, heading = ''] of text.matchAll(/CONTRACT\.md#([a-z-]+)/g)) {
      cited++;
      assert.ok(headings.includes(heading), `${file} cites ${heading}`);
    }
    assert.doesNotMatch(text, /\bcontract \d/, `${file} cites a number`);
  }
  assert.ok(cited > 50, `${cited} citations were found`);
});
