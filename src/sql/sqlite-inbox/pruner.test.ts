import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { migrate } from '../sqlite/migrate.ts';
import { PRUNE_STATEMENTS } from './pruner.ts';

test('no statement of a step scans a table that grows', () => {
  using db = new DatabaseSync(':memory:');
  migrate(db);
  for (const [name, text] of Object.entries(PRUNE_STATEMENTS)) {
    const plan = db.prepare(`EXPLAIN QUERY PLAN ${text}`).all();
    const details = plan.map(({ detail }) => String(detail));
    for (const detail of details) {
      // SQLite's own table of numbers has a row for each of our three tables.
      assert.doesNotMatch(
        detail,
        /^SCAN (?!CONSTANT|sqlite_sequence|\(subquery)|TEMP B-TREE/,
        `${name}: ${detail}`,
      );
    }
  }
  const used = (text: string) => String(db.prepare(`EXPLAIN QUERY PLAN ${text}`).get()?.detail);
  assert.match(used(PRUNE_STATEMENTS.endedThen), /jobs_ended \(finished_at=\? AND rowid>\?\)/);
  assert.match(used(PRUNE_STATEMENTS.endedLater), /jobs_ended \(finished_at>\? AND finished_at<\?\)/);
  assert.match(used(PRUNE_STATEMENTS.received), /PRIMARY KEY \(rowid>\?\)/);
});
