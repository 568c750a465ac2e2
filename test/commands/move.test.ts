import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { openDatabase, pendingMigrations } from '../../src/sql/open.ts';
import { withoutPostgres } from '../support/databases.ts';
import { MAIN, runPortico, startPortico } from '../support/portico-process.ts';
import { type PostgresDatabases, sharedPostgres } from '../support/postgres.ts';
import { rounds } from '../support/proof-settings.ts';
import { seededRandom } from '../support/random.ts';
import { makeRandomRows, rowsOf } from '../support/random-rows.ts';
import { runCommand } from '../support/run-command.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const COUNTS = { users: 24_000, deliveries: 200 };

describe('portico move', { skip: withoutPostgres ?? false }, () => {
  let server: PostgresDatabases;
  before(async () => {
    server = await sharedPostgres();
  });
  after(() => server[Symbol.asyncDispose]());

  /** Starts a move, and ends it with a signal once `far` says so; resolves to its exit code or the signal. */
  async function stopped(
    from: string,
    to: string,
    signal: NodeJS.Signals,
    far: () => boolean | Promise<boolean>,
  ) {
    const child = spawn(process.execPath, [MAIN, 'move', '--from', from, '--to', to], { cwd: '/' });
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    const closed = once(child, 'close') as Promise<[number | null, string | null]>;
    await waitFor('the move to be far enough', async () => child.exitCode !== null || (await far()));
    child.kill(signal);
    const [code, killedBy] = await closed;
    return { end: code ?? killedBy, stderr };
  }

  /** Whether a move into a database came to its end; it has jobs then, which are the last to come. */
  async function isThrough(url: string): Promise<boolean> {
    try {
      if ((await pendingMigrations(url)).length > 0) return false;
    } catch (error) {
      assert.match(String(error), /a move into it is unfinished/);
      return false;
    }
    await using database = await openDatabase(url);
    const { open, dead } = await database.inbox.backlog();
    return open + dead > 0;
  }

  const portico = (...args: readonly string[]) => runCommand(args, { cwd: '/' });
  const moved = async (from: string, to: string) => {
    const { stdout, stderr, code } = await portico('move', '--from', from, '--to', to, '--json');
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout);
  };

  test('killed again and again, there and back, it comes to the end with every row', async () => {
    await using folder = await temporaryFolder();
    const [first, second] = ['first.db', 'second.db'].map((name) => join(folder.path, name)) as [
      string,
      string,
    ];
    await makeRandomRows(first, 21, COUNTS);
    const seed = Math.floor(Math.random() * 2 ** 32);
    const random = seededRandom(seed);
    const to = await server.createDatabase();
    const countRows = async () => {
      const [exists] = await server.sql(`SELECT to_regclass('jobs') IS NOT NULL`, to);
      if (exists?.[0] !== true) return 0;
      const [row] = await server.sql(
        'SELECT (SELECT count(*) FROM users) + (SELECT count(*) FROM deliveries) + (SELECT count(*) FROM jobs)',
        to,
      );
      return Number(row?.[0]);
    };
    let kills = 0;
    for (let round = 0; round < rounds(5) && !(await isThrough(to)); round++) {
      const next = (await countRows()) + random.below(6_000);
      const { end } = await stopped(`sqlite:${first}`, to, 'SIGKILL', async () => (await countRows()) > next);
      if (end === 'SIGKILL') kills++;
    }
    assert.ok(kills > 0, `seed ${seed}`);
    if (!(await isThrough(to))) assert.equal((await moved(`sqlite:${first}`, to)).resumed, true);

    const size = (path: string) => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    const bytes = () => size(second) + size(`${second}-wal`);
    const back = `sqlite:${second}`;
    for (let round = 0; round < rounds(3) && !(await isThrough(back)); round++) {
      const next = bytes() + random.below(3_000_000);
      await stopped(to, back, 'SIGKILL', () => bytes() > next);
    }
    if (!(await isThrough(back))) await moved(to, back);
    assert.deepEqual(rowsOf(second), rowsOf(first), `seed ${seed}`);
  });

  test('it says which relations and columns of users it leaves behind', async () => {
    await using folder = await temporaryFolder();
    const relations = {
      tags: { columns: { name: { type: 'text', max: 9 } } },
      users: { columns: { phone: { type: 'text', max: 9, nullable: true } } },
    };
    await writeFile(join(folder.path, 'portico.config.json'), JSON.stringify({ relations }));
    const sqlite = (name: string) => `sqlite:${join(folder.path, name)}`;
    for (const [from, to] of [
      [sqlite('a.db'), await server.createDatabase()],
      [await server.createDatabase(), sqlite('b.db')],
    ] as const) {
      const made = await runCommand(['migrate'], { cwd: folder.path, env: { DATABASE_URL: from } });
      assert.equal(made.code, 0, made.stderr);
      const { stderr, code } = await portico('move', '--from', from, '--to', to);
      assert.equal(code, 0, stderr);
      assert.match(stderr, /that the configuration does not declare are not moved: tags, users\.phone\./);
    }
  });

  test('Ctrl+C ends it between two batches, and says how to go on', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'first.db');
    await makeRandomRows(file, 22, COUNTS);
    const to = await server.createDatabase();
    const begun = async () => {
      const [exists] = await server.sql(`SELECT to_regclass('jobs') IS NOT NULL`, to);
      if (exists?.[0] !== true) return false;
      return Number((await server.sql('SELECT count(*) FROM users', to))[0]?.[0]) > 0;
    };
    const { end, stderr } = await stopped(`sqlite:${file}`, to, 'SIGINT', begun);
    assert.equal(end, 130);
    assert.match(stderr, /Interrupted\. To resume, run it again with the same arguments/);
    await using refused = startPortico({ cwd: folder.path, env: { DATABASE_URL: to } });
    assert.equal(await refused.exited(), 1);
    assert.match(refused.stderr, /a move into it is unfinished. Run "portico move" again/);

    const { code, stdout } = await portico('move', '--from', `sqlite:${file}`, '--to', to);
    assert.equal(code, 0);
    assert.match(
      stdout,
      /^Moved; both databases hold the same:\n {2}users +20,\d{3} rows, SHA-256 [0-9a-f]{64}\n/,
    );
    await (await openDatabase(to))[Symbol.asyncDispose]();
  });

  test('the source of a running service is refused; by default it is that of the configuration', async () => {
    await using folder = await temporaryFolder();
    const options = { cwd: folder.path };
    const target = await server.createDatabase();
    {
      await using service = startPortico(options);
      await service.ready();
      const { code, stderr } = await runPortico(['move', '--to', target], options);
      assert.match(stderr, /source is in use by another process\. Stop every service/);
      assert.equal(code, 1);
    }
    const { code, stdout } = await runPortico(['move', '--to', target, '--json'], options);
    assert.equal(code, 0);
    assert.equal(JSON.parse(stdout).tables.users.rows, 0);
  });

  test('what cannot be meant is said, and no URL is shown', async () => {
    const problems = [
      [[], 2, /move needs --to/],
      [['--from', 'sqlite:/a.db', '--to', 'sqlite::memory:'], 2, /--to is no database to move/],
      [['--from', 'mysql://u:s3cret@h/d', '--to', 'sqlite:/b.db'], 2, /--from is no database to move/],
      [['--from', 'sqlite:/nowhere/a.db', '--to', 'sqlite:/tmp/b.db'], 1, /there is no such file/],
      [['--from', 'postgres://u:s3cret@127.0.0.1:1/d', '--to', 'sqlite:/tmp/b.db'], 1, /ECONNREFUSED/],
      [['--form', 'postgres://u:s3cret@127.0.0.1:1/d'], 2, /did you mean --from\?/],
    ] as const;
    for (const [args, code, pattern] of problems) {
      const result = await portico('move', ...args);
      assert.match(result.stderr, pattern);
      assert.equal(result.code, code);
      assert.doesNotMatch(result.stderr, /s3cret/);
    }
  });
});
