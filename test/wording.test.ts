import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const ROOT = join(import.meta.dirname, '..');

/**
 * Phrases that come before sentences which need a second reading. Some uses are right, so they are counted and not
 * forbidden: a text that needs one more has to do without another.
 */
const TELLTALES = [
  // In quotes it is a rule.
  /(?<!["'])\b(?:nobody|whoever)\b/gi,
  /\bwhose\b[^.;:]{0,40}?\bis\b/gi,
  /\bof (?:its|their|one's) own\b/gi,
  /\bby (?:itself|themselves)\b/gi,
  /\b(?:is|are) no\b/gi,
  /\bneeds? not\b/gi,
  /\bwhat (?:is|was|are|were|has|have)\b/gi,
  /\bwho (?:has|have|is|are|does|makes|waits|reads|asks)\b/gi,
  /\b(?:all the same|for a try)\b/gi,
];

/** How many are left. The numbers may only fall; lower them when they can be. */
const LEFT = { comments: 86, documents: 30 };

const COMMENT = /\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/[^\n]*/g;

/** The places of a text that have a telltale, with some words around them. */
function telltales(name: string, text: string): readonly string[] {
  const flat = text.replaceAll(/\s+(?:\*\s+)?/g, ' ');
  return TELLTALES.flatMap((telltale) =>
    [...flat.matchAll(telltale)].map(({ index, 0: found }) => {
      return `${name}: ...${flat.slice(Math.max(0, index - 30), index + found.length + 20)}...`;
    }),
  );
}

/** Asserts that a list is no longer than `most`; otherwise shows those of files that are not committed, or all. */
function assertAtMost(found: readonly string[], most: number, what: string): void {
  if (found.length <= most) return;
  const changed = execFileSync('git', ['status', '--porcelain'], { cwd: ROOT, encoding: 'utf8' });
  const fresh = found.filter((each) => changed.includes(each.slice(0, each.indexOf(':'))));
  assert.fail(
    `${found.length} telltales in ${what}, ${most} are allowed; say it more plainly:\n${(fresh.length > 0 ? fresh : found).join('\n')}`,
  );
}

test('comments have fewer and fewer phrases that need a second reading', () => {
  const files = globSync('{src,packages}/**/*.{ts,tsx,sql}', { cwd: ROOT, exclude: ['**/node_modules/**'] });
  const found = files
    .filter((file) => !file.includes('.test.'))
    .flatMap((file) => {
      const text = readFileSync(join(ROOT, file), 'utf8');
      const comments = file.endsWith('.sql') ? text.match(/--[^\n]*/g) : text.match(COMMENT);
      return telltales(file, (comments ?? []).join(' '));
    });
  assertAtMost(found, LEFT.comments, 'comments');
});

test('documents have fewer and fewer phrases that need a second reading', () => {
  const files = globSync(['*.md', 'docs/**/*.md', '{packages,bench,deploy,examples}/**/*.md'], {
    cwd: ROOT,
    exclude: ['**/node_modules/**', 'docs/performance/**', 'docs/soak/**'],
  });
  const found = files.flatMap((file) => telltales(file, readFileSync(join(ROOT, file), 'utf8')));
  assertAtMost(found, LEFT.documents, 'documents');
});

test('a telltale is found, over the end of a line too', () => {
  assert.equal(telltales('a', '/** Nobody knows what\n * is meant. */').length, 2);
  assert.equal(telltales('a', '/** The reader numbers events as they become visible. */').length, 0);
});
