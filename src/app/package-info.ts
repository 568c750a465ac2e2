import { readFileSync } from 'node:fs';

/** Name and version of this program, from package.json. */
export interface PackageInfo {
  readonly name: string;
  readonly version: string;
}

/** Where package.json is: two folders up, in the sources and in the built package alike. */
export const PACKAGE_ROOT = new URL('../../', import.meta.url);

/** Reads package.json. */
export function readPackageInfo(): PackageInfo {
  const text = readFileSync(new URL('package.json', PACKAGE_ROOT), 'utf8');
  const { name, version } = JSON.parse(text) as PackageInfo;
  return { name, version };
}
