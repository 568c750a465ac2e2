import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { loadConfig } from '../../src/app/load-config.ts';
import { readWebhookSettings } from '../../src/webhook/webhook.ts';
import { runCommand } from '../support/run-command.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { type Block, blocks, ROOT } from './documents.ts';

/** Fits every scheme. */
const SECRET = `whsec_${Buffer.alloc(32, 1).toString('base64')}`;

/** What fragments of a program use without saying where it comes from. */
const AMBIENT: Readonly<Record<string, string>> = {
  defineConfig: `import { defineConfig } from 'portico';`,
  app: `import type { FastifyInstance } from 'fastify';\ndeclare const app: FastifyInstance;`,
  graphql: `import { graphql } from 'portico/graphql';`,
  schema: `import type { GraphQLSchema } from 'graphql';\ndeclare const schema: GraphQLSchema;`,
  database: `import { openDatabase } from 'portico/database';\ndeclare const database: Awaited<ReturnType<typeof openDatabase>>;`,
  handlers: 'declare const handlers: Record<string, () => void>;',
  portico: `import { client as connect } from 'portico/client';\nimport type { Relations } from './portico.d.ts';\ndeclare const portico: ReturnType<typeof connect<Relations>>;`,
};

const isDeclared = (text: string, name: string) =>
  new RegExp(`(?:import [^;]*\\b${name}\\b[^;]* from|(?:const|let) (?:{[^}]*)?${name}\\b)`).test(text);

/** A block as a module that a compiler can check: fragments get what they use. */
function moduleOf({ text }: Block): string {
  let module = text;
  if (/^\w+: {/.test(module)) module = `export default {\n${module}\n};`;
  const used = Object.entries(AMBIENT).filter(
    ([name]) => new RegExp(`(?<![.\\w'/])${name}\\b(?![:'])`).test(module) && !isDeclared(module, name),
  );
  return [...used.map(([, declaration]) => declaration), module, 'export {};', ''].join('\n');
}

async function compilerOptions(): Promise<object> {
  const { exports } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as {
    readonly exports: Readonly<Record<string, string>>;
  };
  const own = Object.entries(exports).map(([name, file]) => [
    name.replace('.', 'portico'),
    [join(ROOT, file)],
  ]);
  return {
    ...(JSON.parse(await readFile(join(ROOT, 'tsconfig.json'), 'utf8')) as { compilerOptions: object })
      .compilerOptions,
    // A plain configuration has no types that its functions could take theirs from.
    noImplicitAny: false,
    noUnusedParameters: false,
    noUnusedLocals: false,
    checkJs: true,
    allowJs: true,
    paths: Object.fromEntries(own),
  };
}

test('every program in the documents compiles', async () => {
  const shown = blocks('ts', 'js');
  assert.ok(shown.length > 20, `${shown.length} programs were found`);
  await using folder = await temporaryFolder();
  await mkdir(join(folder.path, 'programs'));
  await symlink(join(ROOT, 'node_modules'), join(folder.path, 'node_modules'));
  await writeFile(join(folder.path, 'package.json'), '{"type":"module"}');
  // Some documents show a program beside a file that it imports.
  await writeFile(
    join(folder.path, 'programs/schema.ts'),
    `import { GraphQLSchema } from 'graphql';\nexport const schema = new GraphQLSchema({});\n`,
  );
  const [declaration] = blocks('json').filter(({ path }) => path === 'docs/RELATIONS.md');
  await writeFile(join(folder.path, 'programs/portico.config.json'), declaration?.text ?? '');
  await runCommand(['types'], { cwd: join(folder.path, 'programs') });
  for (const block of shown) {
    const name = `${block.path.replaceAll(/\W/g, '-')}-${block.line}.${block.language}`;
    await writeFile(join(folder.path, 'programs', name), moduleOf(block));
  }
  const config = { compilerOptions: await compilerOptions(), include: ['programs'] };
  await writeFile(join(folder.path, 'tsconfig.json'), JSON.stringify(config));
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
  const { stdout } = await promisify(execFile)(process.execPath, [compiler, '-p', folder.path], {
    cwd: folder.path,
  }).catch((error: { stdout: string }) => error);
  assert.equal(stdout, '');
});

test('every configuration in the documents can be used', async () => {
  const shown = blocks('ts').filter(({ text }) => /^export default (?:defineConfig\()?{/m.test(text));
  assert.ok(shown.length > 15, `${shown.length} configurations were found`);
  for (const block of shown) {
    await using folder = await temporaryFolder();
    await mkdir(join(folder.path, 'node_modules'));
    await symlink(ROOT, join(folder.path, 'node_modules/portico'));
    for (const [, file = ''] of block.text.matchAll(/file: '([^']+)'/g)) {
      await writeFile(join(folder.path, file), 'a secret of some length\n');
    }
    const needed = [...block.text.matchAll(/env: '(\w+)'/g)].map(([, name = '']) => [name, SECRET]);
    await writeFile(join(folder.path, 'portico.config.ts'), moduleOf(block));
    const loaded = loadConfig({
      argv: [],
      env: Object.fromEntries(needed),
      cwd: folder.path,
      check: readWebhookSettings,
    });
    await assert.doesNotReject(loaded, `${block.path}:${block.line}`);
  }
});

test('every YAML in the documents is YAML', () => {
  for (const { path, line, text } of blocks('yaml'))
    assert.doesNotThrow(() => parse(text, { strict: true }), `${path}:${line}`);
});

test('every JSON in the documents is JSON', () => {
  for (const { path, line, text } of blocks('json'))
    assert.doesNotThrow(() => JSON.parse(text), `${path}:${line}`);
});
