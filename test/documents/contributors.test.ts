import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { documents, ROOT } from './documents.ts';

const DECISIONS = 'docs/decisions/';
const INDEX = `${DECISIONS}README.md`;

/** The pages that name files of the sources. */
const pages = documents().filter(
  ({ path }) =>
    ['ARCHITECTURE.md', 'CONTRIBUTING.md'].includes(path) ||
    path.startsWith('docs/contributing/') ||
    path.startsWith(DECISIONS),
);

const files = ['bin', 'src', 'packages', 'test', 'bench', 'scripts', 'deploy'].flatMap((folder) =>
  globSync(`${folder}/**/*.*`, { cwd: ROOT, exclude: ['**/node_modules/**'] }).map(
    (file) => `/${file.replaceAll('\\', '/')}`,
  ),
);

/** The files that a text names and the project does not have. A name may leave out the folders before it. */
function missingFiles(text: string): readonly string[] {
  const named = [...text.matchAll(/`([\w./-]+\.(?:ts|js|tsx|yml))`/g)].map(([, name = '']) => name);
  return named.filter((name) => !files.some((file) => file.endsWith(`/${name}`)));
}

test('every file that the architecture and the decisions name exists', () => {
  assert.ok(pages.length > 60, `${pages.length} pages were found`);
  const missing = pages.flatMap(({ path, text }) => missingFiles(text).map((name) => `${path}: ${name}`));
  assert.deepEqual(missing, []);
});

test('a file that does not exist is seen', () => {
  assert.deepEqual(missingFiles('`rest/users.ts`, `users.ts` and `rest/nobody.ts`'), ['rest/nobody.ts']);
});

test('the index of the decisions has a line for each page, with its title', () => {
  const index = readFileSync(join(ROOT, INDEX), 'utf8');
  const listed = [...index.matchAll(/^- \[(.+)\]\((.+)\)$/gm)].map(([, title, file]) => `${file}: ${title}`);
  const found = pages
    .filter(({ path }) => path.startsWith(DECISIONS) && path !== INDEX)
    .map(({ path, text }) => `${path.slice(DECISIONS.length)}: ${/^# (.+)$/m.exec(text)?.[1]}`);
  assert.deepEqual(listed.toSorted(), found.toSorted());
});

for (const path of ['ARCHITECTURE.md', 'docs/PERFORMANCE.md']) {
  test(`${path} has 1,500 words at most without its generated tables`, () => {
    const text = readFileSync(join(ROOT, path), 'utf8').replace(/<!-- bench: begin.*bench: end -->/s, '');
    const words = text.match(/\S*[\p{L}\p{N}]\S*/gu) ?? [];
    assert.ok(words.length <= 1_500, `${words.length} words`);
  });
}

test('every ratio in the tables of the performance is in the report', () => {
  const text = (path: string) => readFileSync(join(ROOT, path), 'utf8');
  const [, tables = ''] =
    /<!-- bench: begin .*?-->(.*)<!-- bench: end -->/s.exec(text('docs/PERFORMANCE.md')) ?? [];
  const ratios = tables.match(/\d+\.\d+x/g) ?? [];
  assert.ok(ratios.length > 50, `${ratios.length} ratios were found`);
  const reported = new Set(text('docs/performance/report.md').match(/\d+\.\d+x/g));
  assert.deepEqual(
    ratios.filter((ratio) => !reported.has(ratio)),
    [],
  );
});
