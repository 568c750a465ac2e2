import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { openDatabase } from '../../src/sql/open.ts';
import { postgresUrl, withoutPostgres } from '../support/databases.ts';
import { CHILD_ENVIRONMENT, MAIN } from '../support/portico-process.ts';
import { runCommand } from '../support/run-command.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const engines: Readonly<Record<string, (folder: string) => Promise<string>>> = {
  sqlite: async (folder) => `sqlite:${join(folder, 'portico.db')}`,
  ...(withoutPostgres === undefined ? { postgres: () => postgresUrl() } : {}),
};

/** A folder with a database, and the command on both. */
async function workplace(engine: string) {
  const folder = await temporaryFolder();
  const url = (await engines[engine]?.(folder.path)) ?? '';
  await (await openDatabase(url))[Symbol.asyncDispose]();
  const env = { DATABASE_URL: url };
  return {
    url,
    env,
    path: (name: string) => join(folder.path, name),
    run: (...args: readonly string[]) => runCommand(['users', ...args], { cwd: folder.path, env }),
    async write(name: string, text: string) {
      await writeFile(join(folder.path, name), text);
    },
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

const csvOf = (count: number) =>
  `name,email\n${Array.from({ length: count }, (_, i) => `"n, ${i}",e${i}@x\n`).join('')}`;

for (const engine of Object.keys(engines)) {
  describe(`portico users on ${engine}`, () => {
    test('an import names what it refuses, and imports nothing twice', async () => {
      await using place = await workplace(engine);
      await place.write('users.csv', `${csvOf(3)}x,y\n`);
      const first = await place.run('import', 'users.csv');
      assert.equal(first.code, 1, first.stderr);
      assert.equal(first.stdout, 'Imported 3 users, refused 1 line.\n');
      assert.match(first.stderr, /^Line 5: "email" needs an @ between other characters\.$/m);
      const second = await place.run('import', 'users.csv', '--json');
      const none = { complete: true, created: 0, refused: 0, skipped: 5, examples: [] };
      assert.deepEqual(JSON.parse(second.stdout), none);
      const again = await place.run('import', 'users.csv', '--again', '--transaction');
      assert.equal(again.stdout, 'Imported 0 users, refused 1 line.\n');
      const list = await place.run('list', '--find', 'n, 1');
      assert.match(list.stdout, /^ID +NAME +EMAIL\n +2 +n, 1 +e1@x\n$/);
      const page = await place.run('list', '--limit', '2', '--json');
      assert.deepEqual(JSON.parse(page.stdout).next, 2);
    });

    test('an import that was killed goes on where it was stored, without a gap and without a double', async () => {
      await using place = await workplace(engine);
      const count = 60_000;
      await place.write('users.csv', csvOf(count));
      const child = spawn(process.execPath, [MAIN, 'users', 'import', 'users.csv'], {
        cwd: place.path('.'),
        env: { ...CHILD_ENVIRONMENT, ...place.env },
        stdio: 'ignore',
      });
      {
        await using database = await openDatabase(place.url);
        await waitFor('a part of the import', async () => (await database.users.lastId()) > 0 || undefined);
        child.kill('SIGKILL');
        await once(child, 'exit');
      }
      const rest = JSON.parse((await place.run('import', 'users.csv', '--json')).stdout);
      assert.equal(rest.complete, true);
      assert.ok(rest.skipped > 0, 'the kill came before the first commit');
      assert.equal(rest.created, count - Math.max(0, rest.skipped - 1));
      const exported = await place.run('export', 'out.csv');
      assert.equal(exported.stdout, `Exported ${count.toLocaleString('en-US')} users.\n`);
      const lines = (await readFile(place.path('out.csv'), 'utf8')).split('\r\n');
      assert.deepEqual(
        lines.slice(1, -1).map((line) => line.split(',"').slice(1).join(',"')),
        Array.from({ length: count }, (_, i) => `n, ${i}","e${i}@x"`),
      );
    });

    test('an export that was interrupted goes on, and gives what a whole one gives', async () => {
      await using place = await workplace(engine);
      {
        await using database = await openDatabase(place.url);
        const users = Array.from({ length: 2_500 }, (_, i) => ({ name: `n${i}`, email: `e${i}@x` }));
        await database.users.importUsers(users);
      }
      const whole = await place.run('export', '--format', 'ndjson');
      assert.equal(whole.stdout.split('\n').length, 2_501, whole.stderr);
      // As a kill leaves it: the recorded position, and more behind it.
      const kept = whole.stdout.split('\n').slice(0, 1_000).join('\n');
      const bytes = Buffer.byteLength(kept) + 1;
      await place.write('users.ndjson.part', `${kept}\n{"id":1001,"na`);
      const position = { of: 'users', format: 'ndjson', bytes, rows: 1_000, last: 1_000, upTo: 2_500 };
      await place.write('users.ndjson.part.json', JSON.stringify(position));
      const rest = await place.run('export', 'users.ndjson', '--json');
      assert.deepEqual(JSON.parse(rest.stdout), { complete: true, users: 2_500, resumed: 1_000 });
      assert.equal(await readFile(place.path('users.ndjson'), 'utf8'), whole.stdout);
      await assert.rejects(stat(place.path('users.ndjson.part')));
      await assert.rejects(stat(place.path('users.ndjson.part.json')));
    });
  });
}

test('a wrong call of the commands says what is expected', async () => {
  await using place = await workplace('sqlite');
  await place.write('users.txt', 'x');
  for (const [args, said] of [
    [[], /users needs one of list, import, export/],
    [['imprt'], /did you mean import/],
    [['import'], /needs a file/],
    [['import', 'users.txt'], /add --format csv, ndjson or json/],
    [['import', 'none.csv'], /cannot be read/],
    [['export', 'x', '--format', 'xml'], /takes csv or ndjson/],
    [['export', '--json'], /needs a file/],
  ] as const) {
    const { code, stderr } = await place.run(...args);
    assert.equal(code, 2, args.join(' '));
    assert.match(stderr, said);
  }
});
