/**
 * Writes the generated sections of the documentation. With `--check` it writes nothing, and the exit code is 1 when one
 * is outdated. An argument names another root than that of the project.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { renderOptions } from '../src/config/options-table.ts';
import { ERROR_CODES } from '../src/core/error-codes.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { check: { type: 'boolean' } },
});
const root = positionals[0] ?? join(import.meta.dirname, '..');

/** Puts the content between the lines `<!-- name:start -->` and `<!-- name:end -->` of a file. */
function writeSection(path: string, name: string, content: string): void {
  const file = join(root, path);
  const start = `<!-- ${name}:start -->`;
  const end = `<!-- ${name}:end -->`;
  const text = readFileSync(file, 'utf8');
  const from = text.indexOf(start);
  const to = text.indexOf(end);
  if (from === -1 || to < from) throw new Error(`${file} has no ${start} followed by ${end}; add both lines`);
  const updated = `${text.slice(0, from)}${start}\n\n${content}\n\n${text.slice(to)}`;
  if (updated === text) return;
  if (!values.check) {
    writeFileSync(file, updated);
    return;
  }
  process.stderr.write(`${file}: the section ${name} is outdated; run "npm run docs"\n`);
  process.exitCode = 1;
}

const codes = Object.entries<{ status?: number; text: string }>(ERROR_CODES)
  .toSorted(([a], [b]) => (a < b ? -1 : 1))
  .map(([code, { status, text }]) => `| \`${code}\` | ${status ?? ''} | ${text} |`);

writeSection('docs/CONFIGURATION.md', 'options', renderOptions());
writeSection(
  'docs/ERRORS.md',
  'error-codes',
  ['| Code | Status | Meaning and remedy |', '| --- | --- | --- |', ...codes].join('\n'),
);
