import { readFileSync } from 'node:fs';
import { PACKAGE_ROOT } from '../core/package-root.ts';

/** Name and version of this program, from package.json. */
export interface PackageInfo {
  readonly name: string;
  readonly version: string;
}

/** Reads package.json. */
export function readPackageInfo(): PackageInfo {
  const text = readFileSync(new URL('package.json', PACKAGE_ROOT), 'utf8');
  const { name, version } = JSON.parse(text) as PackageInfo;
  return { name, version };
}
