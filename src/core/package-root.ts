import { readFileSync } from 'node:fs';
import { findPackageJSON, getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';
import { pathToFileURL } from 'node:url';

/**
 * The folder of Portico's package.json. Files read at run time have the same paths below it in the sources
 * and in the built package, in whichever bundle the reading code is.
 */
export const PACKAGE_ROOT = new URL('.', pathToFileURL(findPackageJSON('.', import.meta.url) ?? fail()));

function fail(): never {
  throw new Error(`${import.meta.url} is not inside a package`);
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
