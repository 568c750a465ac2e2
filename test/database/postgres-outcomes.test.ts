import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { openDatabase } from '../../src/sql/open.ts';
import { Connection, isNotSent, isOutcomeUnknown } from '../../src/sql/postgres-pool/connection.ts';
import { Server, writeFailure } from '../../src/sql/postgres-pool/server.ts';
import { withoutPostgres } from '../support/databases.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { waitFor } from '../support/wait-for.ts';

const INSERT = { text: 'INSERT INTO notes (title) VALUES ($1)' };
const skip = withoutPostgres ?? (existsSync('/proc/self/stat') ? false : 'it looks for processes in /proc');

describe('the outcome of a write that fails on PostgreSQL', { skip }, () => {
  let postgres: PostgresServer;
  before(async () => {
    postgres = await startPostgres();
  });
  after(() => postgres?.[Symbol.asyncDispose]());

  /** A server with one connection for writes, the process id of its backend, and what is stored. */
  async function opened() {
    const url = await postgres.createDatabase();
    await postgres.sql('CREATE TABLE notes (title text)', url);
    let opened = 0;
    const server = new Server(
      () => {
        opened++;
        return Connection.open(url);
      },
      { shared: 1, alone: 1 },
      10_000,
    );
    const [row] = await server.write({ text: 'SELECT pg_backend_pid()' }, []);
    return {
      url,
      server,
      backend: Number(row?.[0]),
      opened: () => opened,
      titles: async () => (await server.read({ text: 'SELECT title FROM notes ORDER BY 1' }, [])).flat(),
    };
  }

  /** Ends a backend while this process does not look, so that its last message waits in the socket. */
  function endUnseen(backend: number) {
    process.kill(backend, 'SIGTERM');
    const pause = new Int32Array(new SharedArrayBuffer(4));
    while (existsSync(`/proc/${backend}`)) Atomics.wait(pause, 0, 0, 5);
  }

  test('a transaction that the server refuses to begin is sent again', async () => {
    const { server, backend, titles, opened: count } = await opened();
    await using _ = server;
    const before = count();
    endUnseen(backend);
    await server.transaction([
      [INSERT, ['a']],
      [INSERT, ['b']],
    ]);
    assert.deepEqual(await titles(), ['a', 'b']);
    assert.ok(count() > before, 'another connection was opened');
  });

  test('so is a session of statements that depend on each other', async () => {
    const { server, backend, titles } = await opened();
    await using _ = server;
    endUnseen(backend);
    await server.session(async (run) => {
      await run(INSERT, ['a']);
      return true;
    });
    assert.deepEqual(await titles(), ['a']);
  });

  test('a statement on a connection that was lost before is not sent', async () => {
    const url = await postgres.createDatabase();
    const connection = await Connection.open(url);
    connection.abort('lost');
    for (const work of [
      connection.run({ text: 'SELECT 1' }, []),
      connection.transaction([[{ text: 'SELECT 1' }, []]]),
      connection.session(() => connection.run({ text: 'SELECT 1' }, []).then(() => true)),
    ]) {
      const error: unknown = await work.then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      assert.ok(isNotSent(error), String(error));
      assert.equal(writeFailure(error).code, 'STORE_UNAVAILABLE');
    }
  });

  test('a statement that was sent has an unknown outcome, and is not sent again', async () => {
    const { server, backend, titles } = await opened();
    await using _ = server;
    const sent = server.write({ text: `INSERT INTO notes SELECT 'a' FROM pg_sleep($1)` }, [60]);
    const failed = sent.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    await waitFor('the statement to run', async () => {
      const rows = await postgres.sql(`SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'`);
      return rows.length > 0;
    });
    process.kill(backend, 'SIGTERM');
    const error = await failed;
    assert.ok(isOutcomeUnknown(error), String(error));
    assert.equal(writeFailure(error).code, 'OUTCOME_UNKNOWN');
    assert.deepEqual(await titles(), []);
  });

  test('a server that refuses connections has stored nothing', async () => {
    const url = await postgres.createDatabase();
    await using database = await openDatabase(url, { forService: true });
    const user = { name: 'a', email: 'a@b' };
    assert.equal(await database.users.create(user), 1);
    await postgres.stop('fast');
    try {
      const codes = new Set<unknown>();
      for (let left = 20; left > 0; left--) {
        const code = await database.users.create(user).then(
          () => 'stored',
          (error: unknown) => (error as { readonly code?: unknown }).code,
        );
        codes.add(code);
      }
      assert.deepEqual([...codes], ['STORE_UNAVAILABLE']);
    } finally {
      await postgres.start();
    }
    await waitFor('a write', () =>
      database.users.create(user).then(
        () => true,
        () => false,
      ),
    );
  });

  test('a role without free connections is waited for, and its writes are stored by those it has', async () => {
    const url = await postgres.createDatabase();
    await postgres.sql(`CREATE ROLE few LOGIN CONNECTION LIMIT 2`);
    await postgres.sql('CREATE TABLE notes (title text); GRANT ALL ON notes TO few', url);
    const few = url.replace(/\/\/[^@/]*@/, '//few@');
    await using server = new Server(() => Connection.open(few), { shared: 1, alone: 6 }, 10_000);
    assert.deepEqual(await server.read({ text: 'SELECT title FROM notes' }, []), []);
    await Promise.all(Array.from({ length: 20 }, (_, nth) => server.write(INSERT, [String(nth)])));
    assert.equal((await server.read({ text: 'SELECT title FROM notes' }, [])).length, 20);
  });
});
