import { readFileSync } from 'node:fs';
import { findPackageJSON, getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';
import { pathToFileURL } from 'node:url';

/**
 * The folder of our package.json. Files that are read at run time lie at the same paths below it in the sources and in
 * the built package, whichever bundle the code that reads them is in.
 */
export const PACKAGE_ROOT = new URL('.', pathToFileURL(findPackageJSON('.', import.meta.url) ?? fail()));

function fail(): never {
  throw new Error(`${import.meta.url} lies in no package`);
}

/** The environment of a worker thread: it takes the directory of the compile cache from there only. */
export function threadEnvironment(): NodeJS.ProcessEnv {
  const cache = getCompileCacheDir();
  return cache === undefined ? process.env : { ...process.env, NODE_COMPILE_CACHE: dirname(cache) };
}

/** The name and version of this program, from its package.json. */
export function readPackageInfo(): { readonly name: string; readonly version: string } {
  return JSON.parse(readFileSync(new URL('package.json', PACKAGE_ROOT), 'utf8'));
}
