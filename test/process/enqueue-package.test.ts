import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { readdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { openDatabase } from '../../src/sql/open.ts';
import { postgresUrl, withoutPostgres } from '../support/databases.ts';
import { buildPackage } from '../support/package.ts';

const ROOT = join(import.meta.dirname, '../..');

/** The programs of the guide, the one for PostgreSQL first; the program below has made the table that they write to. */
const SNIPPETS = [...readFileSync(join(ROOT, 'docs/HANDLERS.md'), 'utf8').matchAll(/```js\n(.*?)```/gs)].map(
  ([, program = '']) => program,
);

/** A program with tables of its own beside those of Portico, and handlers that end it once the last one has come. */
const PROGRAM = `
import { DatabaseSync } from 'node:sqlite';
import Fastify from 'fastify';
import pg from 'pg';
import { enqueue, enqueueStatement, openDatabase } from 'portico/database';
import { webhook } from 'portico/webhook';

async function handled(url: string, work: () => Promise<void>): Promise<void> {
  const database = await openDatabase(url);
  const app = Fastify();
  const last = Promise.withResolvers<void>();
  const got: unknown[] = [];
  app.addHook('onClose', () => database[Symbol.asyncDispose]());
  app.register(webhook, {
    inbox: database.inbox,
    handlers: {
      'order.placed': ({ data }) => {
        got.push(data);
        if (data === 'last') last.resolve();
      },
    },
  });
  await app.ready();
  await work();
  await last.promise;
  await app.close();
  console.log(got.join(' '));
}

await handled('sqlite:portico.db', async () => {
  using db = new DatabaseSync('portico.db', { timeout: 5_000 });
  db.exec('CREATE TABLE orders (id INTEGER); BEGIN IMMEDIATE; INSERT INTO orders VALUES (1)');
  enqueue(db, { event: 'order.placed', data: 'never' });
  db.exec('ROLLBACK; BEGIN IMMEDIATE; INSERT INTO orders VALUES (2)');
  const id: string = enqueue(db, { event: 'order.placed', data: 'last', dedupKey: 'order 2' });
  db.exec('COMMIT');
  if (id.length !== 36) throw new Error(id);
});

const url = process.env.PG;
if (url !== undefined) {
  await handled(url, async () => {
    const client = new pg.Client(url);
    await client.connect();
    await client.query('CREATE TABLE orders (id INTEGER)');
    await client.query('BEGIN');
    await enqueue(client, { event: 'order.placed', data: 'never' });
    await client.query('ROLLBACK');
    await client.query('BEGIN');
    const { text, values } = enqueueStatement({ event: 'order.placed', data: 'first' });
    await client.query(text, values);
    await enqueue(client, { event: 'order.placed', data: 'last' });
    await client.query('COMMIT');
    await client.end();
  });
}
`;

test('a program enqueues in its own transactions with the built package', async () => {
  await using packed = await buildPackage({ types: true });
  const { folder } = packed;
  const modules = join(folder, 'node_modules');
  for (const name of await readdir(join(ROOT, 'node_modules'))) {
    if (name !== 'portico') await symlink(join(ROOT, 'node_modules', name), join(modules, name));
  }
  await writeFile(join(folder, 'package.json'), '{"type":"module"}');
  await writeFile(join(folder, 'program.ts'), PROGRAM);
  const compilerOptions = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    module: 'NodeNext',
    target: 'ES2024',
    lib: ['ES2024', 'ESNext.Disposable'],
    types: ['node'],
  };
  await writeFile(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ compilerOptions, include: ['program.ts'] }),
  );
  const run = async (args: readonly string[], env: NodeJS.ProcessEnv = {}) => {
    const options = { cwd: folder, env: { PATH: process.env.PATH, ...env }, timeout: 300_000 };
    return (await promisify(execFile)(process.execPath, args, options)).stdout;
  };
  await run([join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', '.']);
  const postgres = withoutPostgres === undefined ? await postgresUrl() : undefined;
  const env = postgres === undefined ? {} : { PG: postgres, DATABASE_URL: postgres };
  assert.equal(await run(['program.ts'], env), postgres === undefined ? 'last\n' : 'last\nfirst last\n');

  assert.equal(SNIPPETS.length, 2);
  for (const [i, url] of [postgres, `sqlite:${join(folder, 'portico.db')}`].entries()) {
    if (url === undefined) continue;
    await writeFile(join(folder, 'snippet.js'), SNIPPETS[i] ?? '');
    await run(['snippet.js'], env);
    await using database = await openDatabase(url);
    const [found] = await database.inbox.enqueued.oldest();
    assert.equal(String(found?.dedupKey), 'order 7', url);
  }
});
