import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { checks } from './catalogue.ts';
import { configurationChecks } from './configuration-checks.ts';

/** Every clause of the contract that has something to check. */
const clauses = ['1', '2.1', '2.2', '2.3', '2.4', '2.5', '3', '4.1', '4.2', '4.3', '4.4', '5', '6', '7', '8'];
const sections = ['2', '3', '4', '5', '6', '7'];
const rows = [...checks, ...configurationChecks];

test('every check has an id of its own', () => {
  const ids = rows.map(({ id }) => id);
  assert.equal(new Set(ids).size, ids.length, ids.filter((id, index) => ids.indexOf(id) !== index).join(' '));
  for (const id of ids) assert.match(id, /^(REST|GQL|MGMT|HOOK|ALL|CFG)-\d{2}$/);
});

// A check that is removed, renamed, weakened to SHOULD or moved to another clause must be a decision
// that somebody sees: ids.txt changes with it.
test('ids, levels and clauses are as frozen in ids.txt', async () => {
  const frozen = (await readFile(new URL('ids.txt', import.meta.url), 'utf8')).trim().split('\n');
  const now = rows.map(({ id, level, clause }) => `${id} ${level} ${clause}`);
  const lost = frozen.filter((row) => !now.includes(row));
  const added = now.filter((row) => !frozen.includes(row));
  assert.deepEqual(lost, [], 'these rows of ids.txt are gone or changed');
  assert.deepEqual(added, [], 'these are new: add them to ids.txt');
});

test('every section of the contract from 2 to 7 is cited by a MUST', () => {
  for (const section of sections) {
    const citing = rows.filter(({ clause, level }) => level === 'MUST' && clause.split('.')[0] === section);
    assert.ok(citing.length > 0, `nothing cites section ${section}`);
  }
});

test('every clause is cited, and no check cites a clause that is not there', () => {
  for (const clause of clauses) {
    assert.ok(
      rows.some((row) => row.clause === clause),
      `nothing cites ${clause}`,
    );
  }
  for (const { id, clause } of rows) assert.ok(clauses.includes(clause), `${id} cites ${clause}`);
});
