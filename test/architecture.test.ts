import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { test } from 'node:test';

const ROOT = join(import.meta.dirname, '..');
const ROOMS = ['graphql', 'rest', 'management', 'webhook'];
const SHARED = ['config', 'http', 'users', 'inbox', 'database', 'observability'];
/** Folders that see everything, like the files that wire the service; nothing but those imports them. */
const WIRING = ['commands'];
const MAX_LINES = 300;
const MAX_MEDIAN_LINES = 60;

const files = globSync('src/**/*.ts', { cwd: ROOT }).map((file) => file.replaceAll('\\', '/'));
const sources = files.filter((file) => !file.endsWith('.test.ts'));

/** The first folder below src; empty for the files that wire everything. */
function folderOf(file: string): string {
  const [, folder = '', rest] = file.split('/');
  return rest === undefined ? '' : folder;
}

/** The files that a file imports, statically or not, as paths from the root. */
function importsOf(file: string, text: string): readonly string[] {
  const specifiers = [...text.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']*)'/g)].map(
    (match) => match[1] ?? '',
  );
  return specifiers.map((specifier) => posix.normalize(posix.join(dirname(file), specifier)));
}

/** Why an import breaks the law, or undefined. */
function breach(importer: string, imported: string): string | undefined {
  const from = folderOf(importer);
  const to = folderOf(imported);
  // Tests beside their file may use the helpers of test/support.
  if (from === to || from === '' || imported.startsWith('test/support/')) return undefined;
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

test('the law sees a breach when there is one', () => {
  const [imported = ''] = importsOf('src/rest/rest.ts', `import { webhook } from '../webhook/webhook.ts';`);
  assert.equal(breach('src/rest/rest.ts', imported), 'src/rest/rest.ts imports src/webhook/webhook.ts');
  assert.ok(breach('src/http/listener.ts', 'src/rest/rest.ts'));
  assert.ok(breach('src/users/user.ts', 'src/service.ts'));
  assert.ok(breach('src/rest/rest.ts', 'src/commands/send.ts'));
  assert.equal(breach('src/rest/rest.ts', 'src/http/problem.ts'), undefined);
});

test('every folder below src is a room, a shared folder or wiring', () => {
  const folders = new Set(files.map(folderOf));
  folders.delete('');
  assert.deepEqual([...folders].sort(), [...ROOMS, ...SHARED, ...WIRING].sort());
});

test(`no source is longer than ${MAX_LINES} lines, half of them at most ${MAX_MEDIAN_LINES}`, () => {
  const lengths = sources.map((file) => ({
    file,
    lines: readFileSync(join(ROOT, file), 'utf8').split('\n').length - 1,
  }));
  assert.deepEqual(
    lengths.filter(({ lines }) => lines > MAX_LINES),
    [],
  );
  const sorted = lengths.map(({ lines }) => lines).sort((a, b) => a - b);
  assert.ok((sorted[Math.floor(sorted.length / 2)] ?? 0) <= MAX_MEDIAN_LINES);
});

test('each engine has migrations of the same names', () => {
  const engines = ['sqlite', 'postgres'].map((engine) =>
    globSync(`src/database/${engine}/migrations/*.sql`, { cwd: ROOT }).map((file) => posix.basename(file)),
  );
  const [sqlite = [], postgres = []] = engines;
  assert.ok(sqlite.length > 0);
  assert.deepEqual(postgres.sort(), sqlite.sort());
});
