import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { postgresDatabase, withoutPostgres } from '../support/databases.ts';
import { startPortico } from '../support/portico-process.ts';
import { runCommand } from '../support/run-command.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const engines: Readonly<Record<string, (folder: string) => Promise<string>>> = {
  sqlite: async (folder) => `sqlite:${join(folder, 'test.db')}`,
  ...(withoutPostgres === undefined ? { postgres: postgresDatabase } : {}),
};

for (const [engine, urlOf] of Object.entries(engines)) {
  test(`portico migrate shows and makes the steps of relations, and drops what is named, on ${engine}`, async () => {
    await using folder = await temporaryFolder();
    const DATABASE_URL = await urlOf(folder.path);
    const declare = (columns: object, more: object = {}) =>
      writeFile(
        join(folder.path, 'portico.config.json'),
        JSON.stringify({ relations: { books: { columns, ...more } } }),
      );
    const migrate = (...args: readonly string[]) =>
      runCommand(['migrate', ...args], { cwd: folder.path, env: { DATABASE_URL } });
    const title = { type: 'text', max: 20 };
    const subtitle = { type: 'text', max: 20, nullable: true };

    await declare({ title, subtitle });
    const first = await migrate('--check');
    assert.equal(first.code, 3, first.stderr);
    assert.match(first.stdout, /books: create table \(additive, locks a moment\)\n {2}CREATE TABLE "books"/);
    assert.equal(existsSync(join(folder.path, 'test.db')), false, 'a look makes no file');
    assert.equal((await migrate()).code, 0);
    assert.equal((await migrate('--check')).code, 0);

    {
      await using portico = startPortico({ cwd: folder.path, env: { DATABASE_URL, INTERFACES: 'rest' } });
      await portico.ready();
      const body = JSON.stringify([{ title: 'Emma', subtitle: 'a novel' }]);
      const created = await fetch(`${portico.urls.rest}/books`, { method: 'POST', body });
      assert.equal(created.status, 201, await created.text());
      // The service would fail without the column that it declares.
      await declare({ heading: { ...title, was: 'title' }, subtitle });
      const refused = await migrate();
      assert.equal(refused.code, 1);
      assert.match(
        refused.stderr,
        engine === 'sqlite' ? /A service runs on .* Stop it first/ : /1 running process declares other/,
      );
    }

    await declare({ heading: { ...title, was: 'title' } }, { unique: [['heading']] });
    const check = await migrate('--check', '--json');
    assert.equal(check.code, 4, check.stderr);
    assert.ok((JSON.parse(check.stdout) as { steps: unknown[] }).steps.length >= 2);
    const made = await migrate();
    assert.match(made.stdout, /^books: rename column title to heading$/m, made.stderr);
    const remains = /^books\.subtitle is not declared; .*portico migrate --drop books\.subtitle$/m;
    assert.match((await migrate('--check')).stdout, remains);

    const declared = await migrate('--drop', 'books.heading');
    assert.equal(declared.code, 1);
    assert.match(declared.stderr, /books\.heading cannot be dropped/);
    const dropped = await migrate('--drop', 'books.subtitle');
    assert.match(
      dropped.stdout,
      /Dropped books\.subtitle; its values are in .*books\.subtitle\.ndjson\.\n.*are up to date now\.$/m,
      dropped.stderr,
    );
    assert.match(
      readFileSync(join(folder.path, 'books.subtitle.ndjson'), 'utf8'),
      /"subtitle":"a novel"\}\n$/,
    );
    assert.equal((await migrate('--check', '--drop', 'books.title')).code, 2);
    assert.equal((await migrate('--check')).stdout, 'The schema is up to date; there was nothing to do.\n');
  });
}
