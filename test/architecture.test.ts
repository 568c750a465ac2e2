import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { test } from 'node:test';

const ROOT = join(import.meta.dirname, '..');
const ROOMS = ['graphql', 'rest', 'management', 'webhook', 'portal'];
const SHARED = [
  'core',
  'http',
  'telemetry',
  'access',
  'config',
  'relations',
  'inbox',
  'signatures',
  'sending',
  'sql',
];
/** The packages of the workspace, each with what it may import beside itself and packages of others. */
const FENCES: Readonly<Record<string, readonly string[]>> = {
  'packages/transport': ['core'],
  'packages/graphql-plans': ['core', 'packages/transport'],
  'packages/console': [],
};
/** Folders that see everything; nothing but main.ts, index.ts and they themselves import them. */
const WIRING = ['app', 'cli'];
const MAX_LINES = 500;
/** Sources that one folder may hold, not counting its subfolders and its index. */
const MAX_SOURCES = 12;
/** Exported names of sources, and those of them that one other file of the same folder imports. They may only fall; existing tables and the client raised the first by 60, and sending to customers and its portal by 140; the pages of the portal raised the second by 20. */
const MAX_EXPORTS = { all: 2_597, nextDoor: 620 };
/**
 * One file of each cycle between files: without its imports there is none. A recursion of an executor is its subject, two
 * are imports by need, and the others may only become fewer.
 */
const CYCLES = [
  'src/access/jwt.ts',
  'src/config/load-failure.ts',
  'packages/graphql-plans/complete.ts',
  'src/management/endpoints/info.ts',
  'src/relations/user-stores.ts',
  'packages/transport/endpoint.ts',
];

const files = globSync('{src,packages}/**/*.{ts,tsx}', { cwd: ROOT }).map((file) =>
  file.replaceAll('\\', '/'),
);
const sources = files.filter((file) => !file.endsWith('.test.ts'));

/** The first folder below src, or the package; empty for the files that wire everything. */
function folderOf(file: string): string {
  const [top, folder = '', rest] = file.split('/');
  if (top === 'packages') return `packages/${folder}`;
  return rest === undefined ? '' : folder;
}

/** The files that a file imports, statically or not, as paths from the root. */
function importsOf(file: string, text: string): readonly string[] {
  const specifiers = [...text.matchAll(/(?:from|import)\s*\(?\s*'((?:\.|@portico\/)[^']*)'/g)].map(
    (match) => match[1] ?? '',
  );
  return specifiers.map((specifier) =>
    specifier.startsWith('@portico/')
      ? specifier.replace('@portico/', 'packages/').replace(/^packages\/[^/]+$/, '$&/index.ts')
      : posix.normalize(posix.join(dirname(file), specifier)),
  );
}

/** Why an import breaks the rules between folders, or undefined. */
function breach(importer: string, imported: string): string | undefined {
  const from = folderOf(importer);
  const to = folderOf(imported);
  // Tests beside their file may use the helpers of test/support.
  if (from === to || imported.startsWith('test/support/')) return undefined;
  const isTest = importer.endsWith('.test.ts');
  // The interface of a package is one file; what is loaded by need is an entry of its own in its package.json.
  const isInside = to in FENCES && !/^packages\/[^/]+\/(?:index\.ts|limits|tls)$/.test(imported);
  const isForbidden = FENCES[from]?.includes(to) === false;
  if (!isTest && (isInside || isForbidden)) return `${importer} imports ${imported}`;
  if (from === '' || from in FENCES || to in FENCES) return undefined;
  if (SHARED.includes(to) || WIRING.includes(from)) return undefined;
  return `${importer} imports ${imported}`;
}

test('rooms import shared folders only, shared folders never import rooms', () => {
  const breaches = files.flatMap((file) =>
    importsOf(file, readFileSync(join(ROOT, file), 'utf8')).map((imported) => breach(file, imported)),
  );
  assert.deepEqual(
    breaches.filter((found) => found !== undefined),
    [],
  );
});

test('the rules see a breach when there is one', () => {
  const [imported = ''] = importsOf('src/rest/rest.ts', `import { webhook } from '../webhook/webhook.ts';`);
  assert.equal(breach('src/rest/rest.ts', imported), 'src/rest/rest.ts imports src/webhook/webhook.ts');
  assert.ok(breach('packages/transport/server/listener.ts', 'src/rest/rest.ts'));
  assert.ok(breach('packages/transport/server/listener.ts', 'src/telemetry/log.ts'));
  assert.ok(breach('packages/transport/problem.ts', 'packages/graphql-plans/index.ts'));
  assert.ok(breach('src/rest/rest.ts', 'packages/transport/problem.ts'));
  assert.equal(breach('packages/transport/problem.ts', 'src/core/errors.ts'), undefined);
  assert.ok(breach('src/relations/user.ts', 'src/app/service.ts'));
  assert.ok(breach('src/rest/rest.ts', 'src/cli/send.ts'));
  assert.equal(breach('src/rest/rest.ts', 'packages/transport/index.ts'), undefined);
});

/** The sources and packages of Node that a file loads at its start, with those that they load. */
function loadedBy(entry: string): ReadonlySet<string> {
  const loaded = new Set([entry]);
  for (const file of loaded) {
    if (!file.endsWith('.ts')) continue;
    const text = readFileSync(join(ROOT, file), 'utf8').replaceAll(/^import type .*?;$/gms, '');
    for (const imported of importsOf(file, text)) loaded.add(imported);
    for (const [, builtin = ''] of text.matchAll(/from '(node:[^']*)'/g)) loaded.add(builtin);
  }
  return loaded;
}

// Each thread loads its sources anew, which takes most of the start of a service that runs from them.
test('the threads of SQLite load no HTTP', () => {
  const entries = ['sqlite-writer/writer-thread', 'sqlite-writer/checkpoint-thread', 'sqlite/reader-thread'];
  for (const entry of entries) {
    const loaded = loadedBy(`src/sql/${entry}.ts`);
    assert.ok(loaded.has('node:sqlite'), entry);
    const http = [...loaded].filter((file) => /^packages\/|^node:https?$/.test(file));
    assert.deepEqual(http, [], entry);
  }
});

/** The imports of all sources that cross from one folder to another; `folder` names the folder of a file. */
function crossings(folder: (file: string) => string): ReadonlyMap<string, ReadonlySet<string>> {
  const graph = new Map<string, Set<string>>();
  for (const file of sources) {
    for (const imported of importsOf(file, readFileSync(join(ROOT, file), 'utf8'))) {
      const from = folder(file);
      const to = folder(imported);
      if (from !== to) graph.set(from, (graph.get(from) ?? new Set()).add(to));
    }
  }
  return graph;
}

/** The folders of one cycle, if there is any: a walk that comes back to a folder it has not left yet. */
function cycleOf(graph: ReadonlyMap<string, ReadonlySet<string>>): readonly string[] | undefined {
  const left = new Set<string>();
  function walk(folder: string, path: readonly string[]): readonly string[] | undefined {
    if (path.includes(folder)) return [...path.slice(path.indexOf(folder)), folder];
    if (left.has(folder)) return undefined;
    for (const next of graph.get(folder) ?? []) {
      const cycle = walk(next, [...path, folder]);
      if (cycle !== undefined) return cycle;
    }
    left.add(folder);
    return undefined;
  }
  for (const folder of graph.keys()) {
    const cycle = walk(folder, []);
    if (cycle !== undefined) return cycle;
  }
  return undefined;
}

test('folders import each other in one direction', () => {
  assert.equal(cycleOf(crossings(folderOf)), undefined);
  assert.deepEqual([...(crossings(folderOf).get('core') ?? [])], [], 'core imports nobody');
});

/** The imports between files, without those of some. */
function importsWithout(without: readonly string[]): ReadonlyMap<string, ReadonlySet<string>> {
  return new Map([...crossings((file) => file)].filter(([file]) => !without.includes(file)));
}

test('files import each other in one direction', () => {
  assert.equal(cycleOf(importsWithout(CYCLES)), undefined);
});

test('each file that is listed for a cycle is in one', () => {
  const needless = CYCLES.filter(
    (file) => cycleOf(importsWithout(CYCLES.filter((each) => each !== file))) === undefined,
  );
  assert.deepEqual(needless, []);
});

test('a cycle of folders is found', () => {
  const graph = new Map([
    ['a', new Set(['b'])],
    ['b', new Set(['c', 'd'])],
    ['d', new Set(['b'])],
  ]);
  assert.deepEqual(cycleOf(graph), ['b', 'd', 'b']);
  graph.delete('d');
  assert.equal(cycleOf(graph), undefined);
});

test(`no folder has more than ${MAX_SOURCES} sources of its own`, () => {
  const counts = new Map<string, number>();
  for (const file of sources.filter((each) => !each.endsWith('/index.ts')))
    counts.set(dirname(file), (counts.get(dirname(file)) ?? 0) + 1);
  assert.deepEqual(
    [...counts].filter(([, count]) => count > MAX_SOURCES),
    [],
  );
});

test('every folder is a room, a shared folder, wiring or a package', () => {
  const folders = new Set(files.map(folderOf));
  folders.delete('');
  assert.deepEqual([...folders].sort(), [...ROOMS, ...SHARED, ...WIRING, ...Object.keys(FENCES)].sort());
});

test(`no source and no test of one is longer than ${MAX_LINES} lines`, () => {
  const lengths = files.map((file) => ({
    file,
    lines: readFileSync(join(ROOT, file), 'utf8').split('\n').length - 1,
  }));
  assert.deepEqual(
    lengths.filter(({ lines }) => lines > MAX_LINES),
    [],
  );
});

test('each engine has migrations of the same names', () => {
  const engines = ['sqlite', 'postgres'].map((engine) =>
    globSync(`src/sql/${engine}/migrations/*.sql`, { cwd: ROOT }).map((file) => posix.basename(file)),
  );
  const [sqlite = [], postgres = []] = engines;
  assert.ok(sqlite.length > 0);
  assert.deepEqual(postgres.sort(), sqlite.sort());
});

const EXPORTED =
  /^export (?:declare )?(?:async )?(?:abstract )?(?:const|let|function\*?|class|interface|type) (\w+)/gm;
const IMPORTED = /(?:import|export)\s+(?:type\s+)?\{([^}]*)\}\s+from\s+'([^']+)'/g;

/** The files that import each exported name of the sources, as `file#name`. */
function usersOfExports(): ReadonlyMap<string, ReadonlySet<string>> {
  const texts = new Map(sources.map((file) => [file, readFileSync(join(ROOT, file), 'utf8')]));
  const users = new Map<string, Set<string>>();
  for (const [file, text] of texts) {
    if (file.endsWith('/index.ts')) continue;
    for (const [, name] of text.matchAll(EXPORTED)) users.set(`${file}#${name}`, new Set());
  }
  for (const [file, text] of texts) {
    for (const [statement, names = ''] of text.matchAll(IMPORTED)) {
      const [imported = ''] = importsOf(file, statement);
      for (const each of names.split(',')) {
        const [name = ''] = each
          .trim()
          .replace(/^type /, '')
          .split(' as ');
        users.get(`${imported}#${name}`)?.add(file);
      }
    }
  }
  return users;
}

test('a module exports little, and little for one neighbour alone', () => {
  const users = usersOfExports();
  const nextDoor = [...users].filter(([exported, [user, other]]) => {
    const file = exported.slice(0, exported.indexOf('#'));
    return user !== undefined && other === undefined && dirname(user) === dirname(file);
  });
  assert.ok(users.size <= MAX_EXPORTS.all, `${users.size} exported names, ${MAX_EXPORTS.all} are allowed`);
  assert.ok(
    nextDoor.length <= MAX_EXPORTS.nextDoor,
    `${nextDoor.length} exports have one user, in the same folder: merge the files, or export less`,
  );
});

test('the console has at most 1,200 lines of style sheets', () => {
  const sheets = globSync('packages/console/style/*.css', { cwd: ROOT });
  const lines = sheets.map((file) => readFileSync(join(ROOT, file), 'utf8').split('\n').length - 1);
  assert.ok(lines.reduce((sum, each) => sum + each, 0) <= 1_200);
});
