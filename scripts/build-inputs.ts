import { createHash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readGitInfo } from '../src/app/build-info.ts';

/** Everything that determines the bundles; package-lock.json stands for the packages. */
const INPUTS = [
  'bin/*',
  'src/**/*',
  'packages/**/*',
  'scripts/*.ts',
  'package.json',
  'package-lock.json',
  'docs/PACKAGE.md',
];

/**
 * A hash over the sources and the checked-out commit, which /info shows. A build with another hash is
 * outdated.
 */
export async function buildInputs(root: string): Promise<string> {
  const hash = createHash('sha256').update(JSON.stringify((await readGitInfo(root)) ?? null));
  const entries = globSync(INPUTS, { cwd: root, withFileTypes: true, exclude: ['**/*.test.ts'] });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  for (const file of files.sort()) hash.update(`\0${file}\0`).update(readFileSync(file));
  return hash.digest('hex');
}

/** The hash of the build in a folder; undefined if there is none. */
export function builtFrom(folder: string): string | undefined {
  try {
    return JSON.parse(readFileSync(join(folder, 'build/build-info.json'), 'utf8')).inputs;
  } catch {
    return undefined;
  }
}
