import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { readRelations } from '../../src/config/schema/relations.ts';
import { openDatabase } from '../../src/sql/open.ts';
import { postgresUrl, withoutPostgres } from '../support/databases.ts';
import { CHILD_ENVIRONMENT, MAIN } from '../support/portico-process.ts';
import { runCommand } from '../support/run-command.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const DECLARATION = {
  authors: { columns: { name: { type: 'text', max: 60, unique: true } } },
  loans: {
    key: ['place', 'reader_id'],
    columns: {
      place: { type: 'text', max: 20 },
      reader: { type: 'reference', to: 'authors' },
      note: { type: 'text', max: 100, nullable: true },
    },
  },
};

const engines: Readonly<Record<string, (folder: string) => Promise<string>>> = {
  sqlite: async (folder) => `sqlite:${join(folder, 'portico.db')}`,
  ...(withoutPostgres === undefined ? { postgres: () => postgresUrl() } : {}),
};

/** A folder with a declaration and a database, and the commands on both. */
async function workplace(engine: string) {
  const folder = await temporaryFolder();
  const url = (await engines[engine]?.(folder.path)) ?? '';
  await writeFile(join(folder.path, 'portico.config.json'), JSON.stringify({ relations: DECLARATION }));
  const relations = readRelations({ value: DECLARATION, path: 'relations' }, []);
  const opened = async () => {
    const database = await openDatabase(url);
    const { stores } = await database.openRelations(relations);
    return { stores, [Symbol.asyncDispose]: () => database[Symbol.asyncDispose]() };
  };
  await (await opened())[Symbol.asyncDispose]();
  const env = { DATABASE_URL: url };
  return {
    env,
    opened,
    path: (name: string) => join(folder.path, name),
    run: (...args: readonly string[]) => runCommand([...args], { cwd: folder.path, env }),
    async write(name: string, text: string) {
      await writeFile(join(folder.path, name), text);
    },
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

const authorsOf = (count: number) => Array.from({ length: count }, (_, i) => `{"name":"n, ${i}"}\n`).join('');

for (const engine of Object.keys(engines)) {
  describe(`portico import and export of relations on ${engine}`, () => {
    test('rows are imported, refused by line, and exported as they are', async () => {
      await using place = await workplace(engine);
      await place.write('authors.csv', 'name\r\nann\r\nbob\r\n');
      const first = await place.run('import', 'authors', 'authors.csv');
      assert.deepEqual([first.code, first.stdout], [0, 'Imported 2 rows.\n'], first.stderr);
      await place.write('more.csv', 'name\r\neve\r\nann\r\n');
      const more = await place.run('import', 'authors', 'more.csv');
      assert.deepEqual([more.code, more.stdout], [1, 'Imported 1 row, refused 1 line.\n'], more.stderr);
      assert.match(more.stderr, /^Line 3: another row has the same name\.$/m);
      const loans = 'place,reader_id,note\r\n"a,b/c",1,"x ""y"""\r\n"z",2,""\r\n"z",1,\r\n';
      await place.write('loans.csv', loans);
      const whole = await place.run('import', 'loans', 'loans.csv', '--transaction', '--json');
      assert.deepEqual(JSON.parse(whole.stdout), {
        complete: true,
        created: 3,
        refused: 0,
        skipped: 0,
        examples: [],
      });
      const again = await place.run('import', 'loans', 'loans.csv', '--json');
      assert.deepEqual([again.code, JSON.parse(again.stdout).skipped], [0, 4]);
      const sorted = 'place,reader_id,note\r\n"a,b/c",1,"x ""y"""\r\n"z",1,\r\n"z",2,""\r\n';
      const exported = await place.run('export', 'loans', '--format', 'csv');
      assert.equal(exported.stdout, sorted, exported.stderr);
      const file = await place.run('export', 'loans', 'out.csv', '--json');
      assert.deepEqual(JSON.parse(file.stdout), { complete: true, rows: 3, resumed: 0 });
      assert.equal(await readFile(place.path('out.csv'), 'utf8'), sorted);
      const lost = await place.run('import', 'loans', 'out.csv', '--again', '--transaction');
      assert.equal(lost.stdout, 'Imported 0 rows, refused 3 lines.\n');
      // Users are the default.
      await place.write('users.csv', 'name,email\r\nAda,ada@x\r\n');
      assert.equal((await place.run('import', 'users.csv')).stdout, 'Imported 1 user.\n');
      assert.equal((await place.run('export')).stdout, '{"id":1,"name":"Ada","email":"ada@x"}\n');
      assert.equal((await place.run('export', 'all.csv')).stdout, 'Exported 1 user.\n');
    });

    test('an import that was killed continues where it was stored, without a gap and without a double', async () => {
      await using place = await workplace(engine);
      const count = 60_000;
      await place.write('authors.ndjson', authorsOf(count));
      const child = spawn(process.execPath, [MAIN, 'import', 'authors', 'authors.ndjson'], {
        cwd: place.path('.'),
        env: { ...CHILD_ENVIRONMENT, ...place.env },
        stdio: 'ignore',
      });
      {
        await using opened = await place.opened();
        const authors = opened.stores.get('authors');
        const last = async () => (await authors?.exports.lastKey()) !== undefined || undefined;
        await waitFor('a part of the import', last);
        child.kill('SIGKILL');
        await once(child, 'exit');
      }
      const rest = JSON.parse((await place.run('import', 'authors', 'authors.ndjson', '--json')).stdout);
      assert.deepEqual([rest.complete, rest.refused], [true, 0]);
      assert.ok(rest.skipped > 0, 'the kill came before the first commit');
      assert.equal(rest.created, count - rest.skipped);
      const exported = await place.run('export', 'authors', 'out.ndjson');
      assert.equal(exported.stdout, `Exported ${count.toLocaleString('en-US')} rows.\n`);
      const lines = (await readFile(place.path('out.ndjson'), 'utf8')).split('\n').slice(0, -1);
      assert.deepEqual(
        lines.map((line) => (JSON.parse(line) as { readonly name: string }).name),
        Array.from({ length: count }, (_, i) => `n, ${i}`),
      );
    });

    test('an export that was interrupted continues, and gives what a whole one gives', async () => {
      await using place = await workplace(engine);
      await place.write('authors.ndjson', authorsOf(10));
      await place.run('import', 'authors', 'authors.ndjson');
      const loans = Array.from(
        { length: 2_500 },
        (_, i) => `{"place":"p, ${i}/","reader_id":${1 + (i % 10)}}\n`,
      );
      await place.write('loans.ndjson', loans.join(''));
      await place.run('import', 'loans', 'loans.ndjson');
      const whole = await place.run('export', 'loans', '--format', 'ndjson');
      assert.equal(whole.stdout.split('\n').length, 2_501, whole.stderr);
      // As a kill leaves it: the recorded position, and more behind it.
      const kept = whole.stdout.split('\n').slice(0, 1_000);
      const last = JSON.parse(kept.at(-1) ?? '');
      const end = JSON.parse(whole.stdout.split('\n').at(-2) ?? '');
      const placeOf = (row: { place: string; reader_id: number }) =>
        `${encodeURIComponent(row.place)},${row.reader_id}`;
      await place.write('out.ndjson.part', `${kept.join('\n')}\n{"place":"p`);
      await place.write(
        'out.ndjson.part.json',
        JSON.stringify({
          of: 'loans',
          format: 'ndjson',
          bytes: Buffer.byteLength(kept.join('\n')) + 1,
          rows: 1_000,
          last: placeOf(last),
          upTo: placeOf(end),
        }),
      );
      const rest = await place.run('export', 'loans', 'out.ndjson', '--json');
      assert.deepEqual(JSON.parse(rest.stdout), { complete: true, rows: 2_500, resumed: 1_000 });
      assert.equal(await readFile(place.path('out.ndjson'), 'utf8'), whole.stdout);
      await assert.rejects(stat(place.path('out.ndjson.part.json')));
    });
  });
}

test('a wrong call of the commands says what is expected', async () => {
  await using place = await workplace('sqlite');
  await place.write('rows.txt', 'x');
  for (const [args, said] of [
    [['import'], /import needs a file/],
    [['import', 'authors'], /import authors needs a file/],
    [['import', 'authors', 'rows.txt'], /add --format csv, ndjson or json/],
    [['import', 'authors', 'none.csv'], /cannot be read/],
    [
      ['import', 'author', 'rows.txt', '--format', 'csv'],
      /declares no relation "author"; did you mean authors\?/,
    ],
    [['export', 'loan'], /declares no relation "loan"; did you mean loans\?/],
    [['export', 'loans', 'x', '--format', 'xml'], /takes csv or ndjson/],
    [['export', 'loans', '--json'], /needs a file/],
  ] as const) {
    const { code, stderr } = await place.run(...args);
    assert.equal(code, 2, args.join(' '));
    assert.match(stderr, said);
  }
});
