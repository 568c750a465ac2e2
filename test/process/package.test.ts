import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { cp, mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../support/temporary-folder.ts';

const ROOT = join(import.meta.dirname, '../..');

/** Uses every entry, and has a delivery handled. */
const PROGRAM = `
import Fastify from 'fastify';
import { createService } from 'portico';
import { openDatabase } from 'portico/database';
import { graphql } from 'portico/graphql';
import { management } from 'portico/management';
import { rest } from 'portico/rest';
import { backlogCheck, replayPlan, webhook } from 'portico/webhook';

for (const each of [createService, graphql, management, rest, backlogCheck, replayPlan]) {
  if (typeof each !== 'function') throw new Error('an entry misses something');
}
const database = await openDatabase('sqlite:inbox.db');
const app = Fastify();
app.addHook('onClose', () => database[Symbol.asyncDispose]());
const handled = Promise.withResolvers<unknown>();
app.register(webhook, { inbox: database.inbox, handlers: { e: ({ data }) => handled.resolve(data) } });
const reply = await app.inject({ method: 'POST', url: '/webhook', payload: { event: 'e', data: 'here' } });
console.log(reply.body, await handled.promise);
await app.close();
`;

test('the built package runs without the sources, and its types are those of its entries', async () => {
  await using folder = await temporaryFolder();
  const modules = join(folder.path, 'node_modules');
  await mkdir(modules);
  // What npm would install beside it; linked packages would see the sources' own modules.
  for (const name of await readdir(join(ROOT, 'node_modules'))) {
    if (name !== 'portico') await symlink(join(ROOT, 'node_modules', name), join(modules, name));
  }
  const built = join(modules, 'portico');
  execFileSync(process.execPath, [join(ROOT, 'scripts/build.ts'), built], { stdio: 'pipe' });
  const manifest = JSON.parse(readFileSync(join(built, 'package.json'), 'utf8'));
  for (const [name, entry] of Object.entries(manifest.exports)) {
    const paths = typeof entry === 'string' ? [entry] : Object.values(entry as Record<string, string>);
    for (const path of paths) assert.ok(existsSync(join(built, path)), `${name}: ${path}`);
  }
  await writeFile(join(folder.path, 'package.json'), '{"type":"module"}');
  await writeFile(join(folder.path, 'program.ts'), PROGRAM);
  await cp(join(ROOT, 'examples'), folder.path, { recursive: true });
  const run = (args: readonly string[]) =>
    execFileSync(process.execPath, args, { cwd: folder.path, encoding: 'utf8', stdio: 'pipe' });
  assert.equal(run(['program.ts']), 'Webhook received here\n');
  const options = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    module: 'NodeNext',
    target: 'ES2024',
    lib: ['ES2024', 'ESNext.Disposable'],
    types: ['node'],
    allowImportingTsExtensions: true,
  };
  await writeFile(
    join(folder.path, 'tsconfig.json'),
    JSON.stringify({ compilerOptions: options, include: ['program.ts', '*-plugin/*.ts'] }),
  );
  run([join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', '.']);
});
