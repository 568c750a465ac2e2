import assert from 'node:assert/strict';
import { copyFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../../test/support/temporary-folder.ts';
import { openWriteConnection } from '../sqlite/connection.ts';
import { migrate } from '../sqlite/migrate.ts';
import { openSqlite } from '../sqlite/open.ts';

test('the WAL of a killed process is checkpointed at the start, however little the next one writes', async () => {
  await using folder = await temporaryFolder();
  const [original, file] = [join(folder.path, 'original.db'), join(folder.path, 'left.db')];
  using db = openWriteConnection(original);
  migrate(db);
  for (let i = 0; i < 100; i++)
    db.prepare(`INSERT INTO users (name, email) VALUES (?, 'e')`).run('n'.repeat(4_000));
  for (const part of ['', '-wal']) copyFileSync(original + part, file + part);
  assert.equal(statSync(file).size, 4096, 'all of it is in the log');

  await using database = openSqlite(file);
  assert.equal(await database.users.create({ name: 'next', email: 'e' }), 101);
  assert.ok(statSync(file).size > 400_000);
});
