/**
 * Writes the table of options into README.md, between `<!-- options:start -->` and `<!-- options:end -->`.
 * `--check` writes nothing and exits with 1 when the table is not the one the code describes.
 * Another file can be named: `node scripts/config-table.ts [--check] [file]`.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { renderMarkdownTable } from '../src/config/options-table.ts';

const start = '<!-- options:start -->';
const end = '<!-- options:end -->';

const words = process.argv.slice(2);
const check = words.includes('--check');
const named = words.find((word) => word !== '--check');
const file = named === undefined ? resolve(import.meta.dirname, '../README.md') : resolve(named);

const text = readFileSync(file, 'utf8');
const from = text.indexOf(start);
const to = text.indexOf(end);
if (from === -1 || to < from) {
  process.stderr.write(`${file} has no ${start} followed by ${end}; add both lines\n`);
  process.exitCode = 1;
} else {
  const updated = `${text.slice(0, from)}${start}\n\n${renderMarkdownTable()}\n\n${text.slice(to)}`;
  if (updated !== text && check) {
    process.stderr.write(`${file} does not list the options as they are; run node scripts/config-table.ts\n`);
    process.exitCode = 1;
  } else if (updated !== text) {
    writeFileSync(file, updated);
  }
}
