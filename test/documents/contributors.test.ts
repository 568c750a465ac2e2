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

/** The most words of each page, without what is generated. The numbers may only fall; lower them when they can be. */
const MOST_WORDS: Readonly<Record<string, number>> = {
  'ARCHITECTURE.md': 1_500,
  'README.md': 900,
  'docs/API.md': 300,
  'docs/BACKUP.md': 600,
  'docs/CLIENTS.md': 745,
  'docs/CLUSTER.md': 1_430,
  'docs/CONFIGURATION.md': 250,
  'docs/CONSOLE.md': 1_240,
  'docs/CONTRACT.md': 1_350,
  'docs/DELIVERIES.md': 1_180,
  'docs/DEPLOYMENT.md': 750,
  'docs/ERRORS.md': 350,
  'docs/EXISTING.md': 900,
  'docs/FORWARDING.md': 1_100,
  'docs/GRAPHQL.md': 1_700,
  'docs/HANDLERS.md': 2_650,
  'docs/MANAGEMENT.md': 950,
  'docs/OBSERVABILITY.md': 600,
  'docs/OPERATIONS.md': 1_700,
  'docs/PACKAGE.md': 450,
  'docs/PERFORMANCE.md': 1_215,
  'docs/POSTGRESQL.md': 1_330,
  'docs/PROXIES.md': 1_560,
  'docs/RELATIONS.md': 3_650,
  'docs/REST.md': 2_070,
  'docs/RULES.md': 950,
  'docs/HOOKS.md': 950,
  'docs/SCALING.md': 2_500,
  'docs/SECURITY.md': 2_300,
  'docs/SENDING.md': 2_090,
  'docs/TLS.md': 400,
  'docs/README.md': 240,
  'docs/TUTORIAL.md': 1_000,
  'docs/TOUR.md': 1_250,
  'docs/WEBHOOKS.md': 1_330,
  'docs/contributing/GLOSSARY.md': 370,
  'docs/contributing/CONSOLE.md': 500,
  'docs/contributing/TESTING.md': 1_680,
  'docs/contributing/WRITING.md': 350,
};

function wordsOf(text: string): number {
  const written = text
    .replace(/<!-- bench: begin.*bench: end -->/s, '')
    .replaceAll(/<!-- ([\w-]+):start -->.*?<!-- \1:end -->/gs, '');
  return (written.match(/\S*[\p{L}\p{N}]\S*/gu) ?? []).length;
}

test('no guide grows beyond its number of words, and each has one', () => {
  const guides = documents().filter(
    ({ path }) => path in MOST_WORDS || /^(?:README\.md|docs\/(?:contributing\/)?[A-Z]+\.md)$/.test(path),
  );
  const grown = guides
    .map(({ path, text }) => ({ path, words: wordsOf(text), most: MOST_WORDS[path] ?? 0 }))
    .filter(({ words, most }) => words > most)
    .map(({ path, words, most }) => `${path} has ${words} words, ${most} are allowed; say it more briefly`);
  assert.deepEqual(grown, []);
  assert.equal(guides.length, Object.keys(MOST_WORDS).length);
});

test('words of generated parts do not count', () => {
  assert.equal(wordsOf('One, two | - three.\n<!-- a:start -->\nfour\n<!-- a:end -->'), 3);
});

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
