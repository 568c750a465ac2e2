import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import { openDatabase } from '../../../src/database/open-database.ts';
import { startPortico } from '../../support/portico-process.ts';
import type { Random } from '../../support/random.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { waitFor } from '../../support/wait-for.ts';

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
  await waitFor('the database file', () => existsSync(file), 20_000);
  // The tables are made within a few milliseconds after the file.
  if (random.chance(0.6)) await delay(random.below(4));
  portico.child.kill('SIGKILL');
  assert.equal(await portico.exited(), 'SIGKILL', portico.stderr);

  const found = tables(file);
  assert.ok(found === 0 || found > 2, `all tables or none, not ${found}`);
  {
    await using database = openDatabase(`sqlite:${file}`);
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
