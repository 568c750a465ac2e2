import assert from 'node:assert/strict';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { loadConfig } from 'portico';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { ConfigError } from './load.ts';

type Files = Readonly<Record<string, string>>;

/** Writes the files into a new folder, loads the first of them and returns what is wrong. */
async function problemsOf(context: TestContext, files: Files, env: Files = {}): Promise<readonly string[]> {
  const folder = await temporaryFolder();
  context.after(() => folder[Symbol.asyncDispose]());
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder.path, name)), { recursive: true });
    await writeFile(join(folder.path, name), content);
  }
  const [first = ''] = Object.keys(files);
  return loadConfig({ argv: ['--config', first], env, cwd: folder.path }).then(
    () => [],
    (error: unknown) => {
      assert.ok(error instanceof ConfigError, String(error));
      // Nothing of the folder's own path: the place is told from where the reader is.
      return error.problems.map((problem) => problem.replaceAll(folder.path, '<folder>'));
    },
  );
}

const commonjs = { 'package.json': '{"type":"commonjs"}' };
const RENAME =
  'package.json makes it CommonJS: rename it so that it ends in .mts or .mjs, or set "type": "module" in package.json';
const esm = { 'package.json': '{"type":"module"}' };

const failures: readonly (readonly [what: string, files: Files, problem: string])[] = [
  [
    'a syntax error in TypeScript',
    { 'a.ts': 'export default {\n  rest: { port: 1 }\n  graphql: {},\n};\n' },
    "a.ts cannot be loaded: SyntaxError: Expected ',', got 'ident' (a.ts:3:3)",
  ],
  [
    'a syntax error in JavaScript',
    { 'a.js': 'export default {\n  rest: { port: 1 }\n  graphql: {},\n};\n', ...esm },
    'a.js cannot be loaded: SyntaxError: Unexpected identifier (a.js:3:3)',
  ],
  [
    'a syntax error in JavaScript whose kind of module nobody declares',
    { 'a.js': 'export default {\n  webhook: { secret: "a" "hunter2" },\n};\n' },
    'a.js cannot be loaded: SyntaxError: Unexpected string (a.js:2:26)',
  ],
  [
    'a syntax error in CommonJS',
    { 'a.cjs': '\nmodule.exports = { rest: 1 ;\n' },
    "a.cjs cannot be loaded: SyntaxError: Unexpected token ';' (a.cjs:2:28)",
  ],
  [
    'a syntax error behind tabs and wide characters, where no column can be told',
    { 'a.ts': 'export default {\n\t/* 漢字 */ a: "x" "y",\n};\n' },
    "a.ts cannot be loaded: SyntaxError: Expected ',', got 'string literal' (a.ts:2)",
  ],
  [
    'a syntax error behind a tab, which Node shows as spaces',
    { 'a.ts': 'export default {\n\ta: "x" "y",\n};\n' },
    "a.ts cannot be loaded: SyntaxError: Expected ',', got 'string literal' (a.ts:2)",
  ],
  [
    'TypeScript that is more than types',
    { 'a.ts': '\nenum Level { Low }\nexport default {};\n' },
    'a.ts cannot be loaded: SyntaxError: TypeScript enum is not supported in strip-only mode (a.ts:2:1); only types can be removed, so write it in JavaScript',
  ],
  [
    'a syntax error in an imported module, in a folder with a space',
    {
      'a.ts': "import './my checks/dísk.js';\nexport default {};\n",
      'my checks/dísk.js': 'export const a = 1;\nconst = 2;\n',
      ...esm,
    },
    "a.ts cannot be loaded: SyntaxError: Unexpected token '=' (my checks/dísk.js:2:7)",
  ],
  [
    'TypeScript that is more than types in an imported module',
    {
      'a.js': "import './b.ts';\nexport default {};\n",
      'b.ts': 'namespace A { export const b = 1; }\n',
      ...esm,
    },
    'a.js cannot be loaded: SyntaxError: TypeScript namespace declaration is not supported in strip-only mode (b.ts:1:1); only types can be removed, so write it in JavaScript',
  ],
  [
    'an import of a package that is not installed beside it',
    { 'a.ts': "import { defineConfig } from 'portico';\nexport default defineConfig({});\n" },
    'a.ts cannot be loaded: Error: Cannot find package \'portico\' imported from <folder>/a.ts; install Portico beside the file, or import nothing of it but types: "import type { PorticoConfig } from \'portico\'" and "export default { ... } satisfies PorticoConfig"',
  ],
  [
    'an import where package.json says CommonJS',
    { 'a.ts': "import './b.ts';\nexport default {};\n", 'b.ts': '', ...commonjs },
    `a.ts cannot be loaded: SyntaxError: Cannot use import statement outside a module (a.ts:1:1); ${RENAME}`,
  ],
  [
    'an export where package.json says CommonJS',
    { 'a.js': 'export default {};\n', ...commonjs },
    `a.js cannot be loaded: SyntaxError: Unexpected token 'export' (a.js:1:1); ${RENAME}`,
  ],
  [
    'an import of what is not exported',
    {
      'a.ts': "\nimport { nope } from './b.ts';\nexport default { nope };\n",
      'b.ts': 'export const yes = 1;\n',
    },
    "a.ts cannot be loaded: SyntaxError: The requested module './b.ts' does not provide an export named 'nope' (a.ts:2:10)",
  ],
  [
    'an import of a file that is not there',
    { 'a.ts': "import './gone.ts';\nexport default {};\n" },
    "a.ts cannot be loaded: Error: Cannot find module '<folder>/gone.ts' imported from <folder>/a.ts",
  ],
  [
    'a throw while TypeScript is loaded',
    { 'a.ts': "const x: number = 1;\n\nthrow new RangeError('boom\\n' + x);\n" },
    'a.ts cannot be loaded: RangeError: boom 1 (a.ts:3:7)',
  ],
  [
    'a throw while JavaScript is loaded',
    { 'a.js': 'export default {};\nawait 0;\nnobody();\n', ...esm },
    'a.js cannot be loaded: ReferenceError: nobody is not defined (a.js:3:1)',
  ],
  [
    'a throw while CommonJS is loaded',
    { 'a.cjs': 'function f() { throw new Error("boom"); }\nf();\n' },
    'a.cjs cannot be loaded: Error: boom (a.cjs:1:22)',
  ],
  [
    'a throw in an imported module',
    { 'a.ts': "import './b.ts';\nexport default {};\n", 'b.ts': '\nthrow new Error("boom");\n' },
    'a.ts cannot be loaded: Error: boom (b.ts:2:7)',
  ],
  [
    'a throw in a package, which is told by the line that called it',
    {
      'a.ts': "import { fail } from 'broken';\n\nexport default { host: fail() };\n",
      'node_modules/broken/package.json': '{"type":"module","exports":"./index.js"}',
      'node_modules/broken/index.js': 'export function fail() {\n  throw new Error("boom");\n}\n',
    },
    'a.ts cannot be loaded: Error: boom (a.ts:3:24)',
  ],
  [
    'a throw in Node itself',
    { 'a.ts': "export default {\n  host: new URL('nowhere').host,\n};\n" },
    'a.ts cannot be loaded: TypeError: Invalid URL (a.ts:2:9)',
  ],
  [
    'JSON that the module reads and that is none',
    { 'a.ts': 'export default {\n  webhook: { secret: JSON.parse(\'{"secret": hunter2}\') },\n};\n' },
    'a.ts cannot be loaded: SyntaxError: Unexpected token in JSON (a.ts:2:27)',
  ],
  ['a throw of what is no error', { 'a.ts': "throw 'boom';\n" }, 'a.ts cannot be loaded: Error: boom'],
  [
    'an error without a stack',
    { 'a.ts': "throw Object.assign(new Error('boom'), { stack: undefined });\n" },
    'a.ts cannot be loaded: Error: boom',
  ],
  [
    'a promise that is rejected',
    { 'a.ts': "export default Promise.resolve().then(() => {\n  throw new Error('boom');\n});\n" },
    'a.ts cannot be loaded: Error: boom (a.ts:2:9)',
  ],
  [
    'a property that cannot be read',
    { 'a.ts': "export default {\n  get rest() {\n    throw new Error('boom');\n  },\n};\n" },
    'a.ts cannot be loaded: Error: boom (a.ts:3:11)',
  ],
  [
    'JSON with a fault',
    { 'a.json': '{\n  "rest": { "port": 1 }\n  "graphql": {}\n}\n' },
    'a.json cannot be loaded: it is not JSON from here on (a.json:3:3)',
  ],
  [
    'JSON with a fault that JSON.parse shows with its surroundings',
    { 'a.json': '{\n  "webhook": { "secret": hunter2 }\n}\n' },
    'a.json cannot be loaded: it is not JSON from here on (a.json:2:26)',
  ],
  [
    'JSON that ends too early',
    { 'a.json': '{ "rest": {' },
    'a.json cannot be loaded: it ends too early (a.json:1:12)',
  ],
  ['JSON that is empty', { 'a.json': '' }, 'a.json cannot be loaded: it ends too early (a.json:1:1)'],
  ['JSON that is no object', { 'a.json': '"hunter2"' }, 'a.json must hold an object, not a text'],
  [
    'code in JSON',
    { 'a.json': '{"management":{"users":[]}}' },
    'a.json: management.users needs a .ts or .js module; .json holds settings only',
  ],
  [
    'no default export',
    { 'a.ts': 'export const config = {};\n' },
    'a.ts has no default export; write: export default defineConfig({ ... })',
  ],
  [
    'an empty file',
    { 'a.js': '' },
    'a.js has no default export; write: export default defineConfig({ ... })',
  ],
  [
    'a default export that is a function',
    { 'a.ts': 'export default () => ({});\n' },
    'the default export of a.ts must be an object or a promise of one, not a function',
  ],
  [
    'a default export that is an array',
    { 'a.ts': 'export default Promise.resolve([]);\n' },
    'the default export of a.ts must be an object or a promise of one, not an array',
  ],
];

for (const [what, files, problem] of failures) {
  test(`${what} is told by its place`, async (context) => {
    assert.deepEqual(await problemsOf(context, files), [problem]);
  });
}

test('looking for a syntax error does not run the module again', async (context) => {
  const files = {
    'a.js': "import './count.js';\nawait import('./broken.js');\nexport default {};\n",
    'count.js':
      "import { appendFileSync } from 'node:fs';\nappendFileSync(new URL('count', import.meta.url), 'x');\n",
    'broken.js': 'export const = 1;\n',
    'b.ts':
      "import { readFileSync } from 'node:fs';\nthrow new Error(readFileSync(new URL('count', import.meta.url), 'utf8'));\n",
    ...esm,
  };
  const folder = await temporaryFolder();
  context.after(() => folder[Symbol.asyncDispose]());
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder.path, name), content);
  const load = (name: string) => loadConfig({ argv: ['--config', name], env: {}, cwd: folder.path });
  await assert.rejects(load('a.js'), {
    problems: ["a.js cannot be loaded: SyntaxError: Unexpected token '='"],
  });
  await assert.rejects(load('b.ts'), { problems: ['b.ts cannot be loaded: Error: x (b.ts:2:7)'] });
});

test('who loads the configuration is never told as the place, however long stacks are', async (context) => {
  const limit = Error.stackTraceLimit;
  context.after(() => {
    Error.stackTraceLimit = limit;
  });
  Error.stackTraceLimit = 100;
  assert.deepEqual(await problemsOf(context, { 'a.ts': "import './gone.ts';\nexport default {};\n" }), [
    "a.ts cannot be loaded: Error: Cannot find module '<folder>/gone.ts' imported from <folder>/a.ts",
  ]);
  assert.deepEqual(await problemsOf(context, { 'a.js': 'export const = 1;\n', ...esm }), [
    "a.js cannot be loaded: SyntaxError: Unexpected token '=' (a.js:1:14)",
  ]);
});

test('a place in a folder that is reached through a link is told from that folder', async (context) => {
  const folder = await temporaryFolder();
  context.after(() => folder[Symbol.asyncDispose]());
  const real = join(folder.path, 'real');
  const link = join(folder.path, 'link');
  await mkdir(real);
  await symlink(real, link);
  await writeFile(join(real, 'portico.config.ts'), "\nthrow new Error('boom');\n");
  await assert.rejects(loadConfig({ argv: [], env: {}, cwd: link }), {
    problems: ['portico.config.ts cannot be loaded: Error: boom (portico.config.ts:2:7)'],
  });
});

test('a message that a module throws does not show the secrets of flags and environment', async (context) => {
  const module =
    "throw new Error(process.argv.length + ' cannot reach postgres://u:hunter2@db/x with tok1 or tok2');\n";
  const env = { DATABASE_URL: 'postgres://u:hunter2@db/x', WEBHOOK_SECRET: 'tok1,tok2' };
  const [problem = ''] = await problemsOf(context, { 'a.ts': module }, env);
  assert.match(problem, /cannot reach \*+ with \*+ or \*+ \(a\.ts:1:7\)$/);
});
