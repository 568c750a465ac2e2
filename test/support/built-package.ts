import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from './temporary-folder.ts';

const ROOT = join(import.meta.dirname, '../..');

/** The package as it is published, in the folder `node_modules/portico` of an otherwise empty one. */
export interface BuiltPackage extends AsyncDisposable {
  /** The folder around node_modules. */
  readonly folder: string;
  readonly built: string;
}

/** Builds the package; without its types, which take longest, unless they are asked for. */
export async function buildPackage({ types = false } = {}): Promise<BuiltPackage> {
  const folder = await temporaryFolder();
  const built = join(folder.path, 'node_modules/portico');
  mkdirSync(join(folder.path, 'node_modules'));
  const words = [join(ROOT, 'scripts/build.ts'), built, ...(types ? [] : ['--when-stale'])];
  execFileSync(process.execPath, words, { stdio: 'pipe' });
  return { folder: folder.path, built, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}
