import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';

export interface MarkedSection {
  /** The name in the two marker lines `<!-- name:start -->` and `<!-- name:end -->`. */
  readonly name: string;
  /** The file that has the section, from the root of the project, unless an argument names another one. */
  readonly file: string;
  /** What stands between the markers. */
  readonly content: string;
  /** The script that writes the section, as messages name it. */
  readonly script: string;
}

/**
 * Runs a script that writes a generated section into a Markdown file: `[--check] [file]`. With `--check` it writes
 * nothing, and the exit code is 1 when the section is outdated.
 */
export function runSectionScript({ name, file: usual, content, script }: MarkedSection): void {
  const words = process.argv.slice(2);
  const check = words.includes('--check');
  const named = words.find((word) => word !== '--check');
  const file = named === undefined ? resolve(import.meta.dirname, '..', usual) : resolve(named);
  const start = `<!-- ${name}:start -->`;
  const end = `<!-- ${name}:end -->`;

  const text = readFileSync(file, 'utf8');
  const from = text.indexOf(start);
  const to = text.indexOf(end);
  if (from === -1 || to < from) {
    fail(`${file} has no ${start} followed by ${end}; add both lines`);
    return;
  }
  const updated = `${text.slice(0, from)}${start}\n\n${content}\n\n${text.slice(to)}`;
  if (updated === text) return;
  if (check) fail(`${file} does not list the ${name} as they are; run node ${script}`);
  else writeFileSync(file, updated);
}

function fail(message: string): void {
  process.stderr.write(`${message}\n`);
  process.exitCode = 1;
}
