import assert from 'node:assert/strict';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { standStill } from '../support/broken-machine.ts';
import { type PorticoProcess, startPortico } from '../support/portico-process.ts';
import { control } from '../support/source-copy.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

interface Outcome {
  /** The rows of `jobs` once the second process had done them, and after the first one had gone on. */
  readonly done: readonly unknown[];
  readonly later: readonly unknown[];
  /** What the handlers noted, line by line. */
  readonly effects: readonly string[];
  /** Messages that the first process logged. */
  readonly logged: readonly unknown[];
}

/**
 * A process is stopped in the middle of two attempts until another one has made them, and then goes on: one of its
 * attempts fails, the other succeeds.
 */
async function stopAndGoOn(main?: string): Promise<Outcome> {
  await using folder = await temporaryFolder();
  const start = (name: string): PorticoProcess =>
    startPortico({
      cwd: folder.path,
      env: {
        INTERFACES: 'webhook',
        CONFIG: join(import.meta.dirname, 'stopped/handlers.ts'),
        NAME: name,
      },
      ...(main !== undefined && { main }),
    });
  const log = join(folder.path, 'effects.log');
  const effects = () => (existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : []);
  const jobs = () => {
    using db = new DatabaseSync(join(folder.path, 'portico.db'), { readOnly: true, timeout: 5_000 });
    return db.prepare('SELECT * FROM jobs ORDER BY seq').all();
  };
  const canWrite = () => {
    using db = new DatabaseSync(join(folder.path, 'portico.db'), { timeout: 1_000 });
    try {
      db.exec('BEGIN IMMEDIATE; ROLLBACK');
      return true;
    } catch (error) {
      assert.match(String(error), /database is locked/);
      return false;
    }
  };

  await using first = start('first');
  await first.ready();
  for (const event of ['failing', 'succeeding']) {
    await fetch(`${first.urls.webhook}/webhook`, { method: 'POST', body: JSON.stringify({ event }) });
  }
  await waitFor('both attempts to begin', () => effects().length === 2);
  // Stopped in the middle of a write it would hold the lock of the file.
  await waitFor('it to be stopped outside of a write', () => {
    standStill(first.child.pid ?? 0);
    if (canWrite()) return true;
    first.child.kill('SIGCONT');
    return false;
  });

  // The lock of the stopped service would refuse a second one.
  rmSync(join(folder.path, 'portico.db-service'));
  await using second = start('second');
  await second.ready();
  const done = await waitFor('the other process to do both', () => {
    const found = jobs();
    return found.every(({ status }) => status === 'done') && found;
  });
  writeFileSync(join(folder.path, 'go'), '');
  first.child.kill('SIGCONT');
  await waitFor('the first process to end its attempts', () => effects().length === 8);
  // What is under way is recorded, or not, before the process has ended.
  for (const { child, exited } of [first, second]) {
    child.kill('SIGTERM');
    assert.equal(await exited(), 0);
  }
  return { done, later: jobs(), effects: effects(), logged: first.logs().map(({ msg }) => msg) };
}

test('what another process has done meanwhile is not touched by one that was stopped', async () => {
  const { done, later, effects, logged } = await stopAndGoOn();
  assert.deepEqual(later, done);
  assert.deepEqual(
    effects.toSorted(),
    ['failing', 'succeeding']
      .flatMap((event) =>
        ['begin', 'end'].flatMap((mark) => [`${mark} ${event} 1 first`, `${mark} ${event} 1 second`]),
      )
      .toSorted(),
  );
  assert.equal(
    logged.filter((msg) => msg === 'lease lost, another process may handle the delivery').length,
    2,
  );
});

// biome-ignore lint/suspicious/noTemplateCurlyInString: the source has it
const fence = 'WHERE ${FENCE}';
const noFence = "WHERE seq = ? AND ? <> '' AND ? > 0 AND ? >= 0";

for (const statement of [
  'answer = ?,\n      ended_by = owner, owner = NULL\n    ',
  'due_at = ?, error = ?, owner = NULL\n    ',
]) {
  control(`without its fence (${statement.trim()}) it is`, {
    edits: [{ file: 'src/sql/sqlite-inbox/settle.ts', from: statement + fence, to: statement + noFence }],
    async find(main) {
      const { done, later } = await stopAndGoOn(main);
      assert.notDeepEqual(later, done);
    },
  });
}
