import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import { MoveEnd } from '../../src/sql/move/end.ts';
import { moveDatabase } from '../../src/sql/move/move.ts';
import { migrateDatabase, openDatabase } from '../../src/sql/open.ts';
import { withoutPostgres } from '../support/databases.ts';
import { move, refused } from '../support/move.ts';
import { type PostgresDatabases, sharedPostgres } from '../support/postgres.ts';
import { makeRandomRows } from '../support/random-rows.ts';
import { storeDeliveries } from '../support/stored-deliveries.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

describe('moves that are refused', { skip: withoutPostgres ?? false }, () => {
  let server: PostgresDatabases;
  before(async () => {
    server = await sharedPostgres();
  });
  after(() => server[Symbol.asyncDispose]());

  test('a database that a service runs on is neither moved nor moved into', async () => {
    await using folder = await temporaryFolder();
    const [used, free] = ['used.db', 'free.db'].map((name) => `sqlite:${join(folder.path, name)}`) as [
      string,
      string,
    ];
    const [usedServer, freeServer] = [await server.createDatabase(), await server.createDatabase()];
    for (const url of [free, freeServer]) await migrateDatabase(url);
    for (const url of [used, usedServer]) {
      await using _service = await openDatabase(url);
      await assert.rejects(move(url, free), refused(/source is in use by another process. Stop every/));
      await assert.rejects(move(freeServer, url), refused(/target is in use by another process/));
    }
    // The services are gone, and left no trace of the moves that were refused.
    for (const url of [used, usedServer]) await (await openDatabase(url))[Symbol.asyncDispose]();
    // Its writes would come too late: while a database is moved there are none.
    await using source = await MoveEnd.open(usedServer, 'source');
    await using database = await openDatabase(usedServer);
    await assert.rejects(database.users.create({ name: 'a', email: 'a@b' }), /lock timeout/);
    await using file = await MoveEnd.open(used, 'source');
    assert.throws(() => openDatabase(used as 'sqlite:x'), /database is locked/);
    assert.notEqual(source.origin, file.origin);
  });

  test('a service that comes to a PostgreSQL source in the middle keeps the move from its end', async () => {
    await using folder = await temporaryFolder();
    const from = await server.createDatabase();
    const to = `sqlite:${join(folder.path, 'target.db')}`;
    {
      await using database = await openDatabase(from);
      await storeDeliveries(database, 'e', 10);
    }
    {
      await using source = await MoveEnd.open(from, 'source');
      await using _service = await openDatabase(from);
      await using target = await MoveEnd.open(to, 'target');
      const options = { signal: new AbortController().signal, restart: false, onProgress() {} };
      await assert.rejects(moveDatabase(source, target, options), refused(/source is in use/));
    }
    await assert.rejects(async () => openDatabase(to), /a move into it is unfinished/);
    assert.equal((await move(from, to)).tables?.deliveries.rows, 10);
  });

  test('a source that is missing, old, new, or the target itself is refused', async () => {
    await using folder = await temporaryFolder();
    const missing = `sqlite:${join(folder.path, 'missing.db')}`;
    await assert.rejects(move(missing, await server.createDatabase()), /there is no such file/);
    const file = join(folder.path, 'source.db');
    const url = `sqlite:${file}`;
    await makeRandomRows(file, 10, { users: 10, deliveries: 10 });
    const to = await server.createDatabase();
    const change = (sql: string) => {
      using db = new DatabaseSync(file);
      db.exec(sql);
    };
    change(`UPDATE migrations SET name = '999-later.sql' WHERE name = '001-schema.sql'`);
    await assert.rejects(move(url, to), /newer version \(999-later\.sql\)/);
    change(`DELETE FROM migrations WHERE name = '999-later.sql'`);
    await assert.rejects(
      move(url, to),
      /not up to date \(001-schema\.sql\)\. Run "portico migrate" on it first/,
    );
    await migrateDatabase(to);
    await assert.rejects(move(to, to), refused(/source itself/));
    await assert.rejects(move(await server.createDatabase(), to), /not up to date \(001-schema\.sql/);
    await assert.rejects(move(url, url), /in use|not up to date/);
  });
});
