import { findPackageJSON } from 'node:module';
import { pathToFileURL } from 'node:url';

/**
 * The folder of our package.json. Files that are read at run time lie at the same paths below it in the sources and in
 * the built package, whichever bundle the code that reads them is in.
 */
export const PACKAGE_ROOT = new URL('.', pathToFileURL(findPackageJSON('.', import.meta.url) ?? fail()));

function fail(): never {
  throw new Error(`${import.meta.url} lies in no package`);
}
