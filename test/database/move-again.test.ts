import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import { openDatabase } from '../../src/sql/open.ts';
import { withoutPostgres } from '../support/databases.ts';
import { move, refused } from '../support/move.ts';
import { type PostgresDatabases, sharedPostgres } from '../support/postgres.ts';
import { makeRandomRows, rowsOf } from '../support/random-rows.ts';
import { runCommand } from '../support/run-command.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

describe('a move that is complete and run again', { skip: withoutPostgres ?? false }, () => {
  let server: PostgresDatabases;
  before(async () => {
    server = await sharedPostgres();
  });
  after(() => server[Symbol.asyncDispose]());

  for (const engine of ['sqlite', 'postgres'] as const) {
    test(`is a success into ${engine} while the target holds the same, and refused once it does not`, async () => {
      await using folder = await temporaryFolder();
      const file = join(folder.path, 'source.db');
      await makeRandomRows(file, 5, { users: 300, deliveries: 20 });
      const from = `sqlite:${file}`;
      const to =
        engine === 'sqlite' ? `sqlite:${join(folder.path, 'target.db')}` : await server.createDatabase();
      const first = await move(from, to);
      assert.equal(first.alreadyComplete, false);
      for (const restart of [false, true]) {
        const again = await move(from, to, undefined, restart);
        assert.deepEqual(again, { ...first, alreadyComplete: true });
      }
      const { stdout, code } = await runCommand(['move', '--from', from, '--to', to], { cwd: '/' });
      assert.equal(code, 0);
      assert.match(
        stdout,
        /^The move is already complete, nothing was copied; both databases hold the same:/,
      );
      {
        await using target = await openDatabase(to);
        const [id] = rowsOf(file).users?.map((row) => Number((row as { id: number }).id)) ?? [];
        assert.equal(await target.users.update(id ?? 0, { name: 'changed', email: 'a@b' }), true);
      }
      for (const restart of [false, true]) {
        await assert.rejects(
          move(from, to, undefined, restart),
          refused(/not empty.*not those of the source/),
        );
      }
    });
  }

  test('another database of the same size is no complete move', async () => {
    await using folder = await temporaryFolder();
    const [one, other] = ['one.db', 'other.db'].map((name) => join(folder.path, name)) as [string, string];
    await makeRandomRows(one, 5, { users: 30, deliveries: 5 });
    const to = await server.createDatabase();
    await move(`sqlite:${one}`, to);
    await move(`sqlite:${one}`, `sqlite:${other}`);
    {
      using db = new DatabaseSync(other);
      db.exec(`UPDATE users SET email = 'other@b' WHERE id = (SELECT max(id) FROM users)`);
    }
    await assert.rejects(move(`sqlite:${other}`, to), refused(/not empty/));
  });
});
