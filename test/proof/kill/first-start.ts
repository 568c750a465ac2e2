import assert from 'node:assert/strict';
import { watch } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { openDatabase } from '../../../src/sql/open.ts';
import { startPortico } from '../../support/portico-process.ts';
import type { Random } from '../../support/random.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

/** How far the first start had come. */
export type FirstStart = 'no table' | 'migrated';

/**
 * Kills a process while it makes its database, and proves that the next one opens what is left and works.
 * Resolves to how far it had come.
 */
export async function killFirstStart(random: Random, main?: string): Promise<FirstStart> {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'portico.db');
  const env = { INTERFACES: 'rest,webhook' };
  await using portico = startPortico({ cwd: folder.path, env, ...(main !== undefined && { main }) });
  // The folder changes a few dozen times until there are tables.
  let changes = 1 + random.below(50);
  const watcher = watch(folder.path, () => {
    if (--changes === 0) portico.child.kill('SIGKILL');
  });
  await Promise.race([portico.exited(), portico.ready().catch(() => {})]);
  watcher.close();
  portico.child.kill('SIGKILL');
  assert.equal(await portico.exited(), 'SIGKILL', portico.stderr);

  const found = tables(file);
  assert.ok(found === 0 || found > 2, `all tables or none, not ${found}`);
  {
    await using database = await openDatabase(`sqlite:${file}`);
    assert.equal(await database.users.create({ name: 'first', email: 'a@b' }), 1);
  }
  assert.ok(tables(file) > 2);
  return found === 0 ? 'no table' : 'migrated';
}

/** How many tables the program has made in the file. */
function tables(file: string): number {
  using db = new DatabaseSync(file);
  assert.equal(db.prepare('PRAGMA integrity_check').get()?.integrity_check, 'ok');
  const [row] = db
    .prepare(`SELECT count(*) AS count FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'sqlite_*'`)
    .all();
  return Number(row?.count);
}
