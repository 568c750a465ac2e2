import { existsSync, readFileSync } from 'node:fs';
import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';

/**
 * The folder of Portico's package.json. Files read at run time have the same paths below it in the sources
 * and in the built package, in whichever bundle the reading code is.
 */
export const PACKAGE_ROOT = packageRoot(new URL('.', import.meta.url));

/** Looks for it itself, because `findPackageJSON` of Node takes 4 ms of a start. */
function packageRoot(folder: URL): URL {
  if (existsSync(new URL('package.json', folder))) return folder;
  const above = new URL('..', folder);
  if (above.href === folder.href) throw new Error(`${import.meta.url} is not inside a package`);
  return packageRoot(above);
}

/** The environment of a worker thread, which reads the directory of the compile cache only from there. */
export function threadEnvironment(): NodeJS.ProcessEnv {
  const cache = getCompileCacheDir();
  return cache === undefined ? process.env : { ...process.env, NODE_COMPILE_CACHE: dirname(cache) };
}

/** The name and version of this program, from its package.json. */
export function readPackageInfo(): { readonly name: string; readonly version: string } {
  return JSON.parse(readFileSync(new URL('package.json', PACKAGE_ROOT), 'utf8'));
}
