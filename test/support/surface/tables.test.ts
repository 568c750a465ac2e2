import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { temporaryFolder } from '../temporary-folder.ts';
import { describeSqlite } from './tables.ts';

const INDEX = "CREATE INDEX jobs_open ON jobs (due_at) WHERE status = 'open, or so';";
const TRIGGER = 'CREATE TRIGGER jobs_end AFTER UPDATE ON jobs BEGIN UPDATE jobs SET n = n + 1; END;';
const IN_STEPS = `CREATE TABLE tasks (seq INTEGER PRIMARY KEY, status TEXT NOT NULL
  CHECK (status IN ('open, or so', 'done'))) STRICT; -- as it was
  ALTER TABLE tasks ADD COLUMN due_at INTEGER DEFAULT (max(1, 2));
  ALTER TABLE tasks RENAME TO jobs; ALTER TABLE jobs ADD COLUMN n INTEGER; ${INDEX} ${TRIGGER}`;
const AT_ONCE = `CREATE TABLE jobs (
    -- what comes first
    seq INTEGER PRIMARY KEY,
    status TEXT NOT NULL CHECK (status IN ('open, or so', 'done')), due_at INTEGER DEFAULT (max(1, 2)),
    n INTEGER
  ) STRICT; ${TRIGGER} ${INDEX}`;

async function described(statements: string): Promise<string> {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'made-up.db');
  using database = new DatabaseSync(file);
  database.exec(statements);
  return describeSqlite(file);
}

test('one migration and several that come to the same give the same tables', async () => {
  const tables = await described(IN_STEPS);
  assert.equal(await described(AT_ONCE), tables);
  assert.match(
    tables,
    /\ntable jobs STRICT\n {2}seq INTEGER PRIMARY KEY\n {2}status TEXT NOT NULL CHECK \(status IN \('open, or so', 'done'\)\)\n/,
  );
});

for (const [change, from, to] of [
  ['a column of another type', 'n INTEGER', 'n TEXT'],
  ['another default', 'max(1, 2)', 'max(1, 3)'],
  ['another constraint', "'done'", "'over'"],
  ['no index', INDEX, ''],
  ['an index on other rows', "WHERE status = 'open, or so'", "WHERE status = 'open'"],
  ['another trigger', 'n + 1', 'n + 2'],
] as const) {
  test(`there are other tables with ${change}`, async () => {
    assert.notEqual(await described(AT_ONCE.replace(from, to)), await described(AT_ONCE));
  });
}
