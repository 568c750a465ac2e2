import { readFileSync } from 'node:fs';
import { PACKAGE_ROOT } from '../core/package-root.ts';

/** Reads package.json, of which name and version of this program are used. */
export function readPackageInfo(): { readonly name: string; readonly version: string } {
  return JSON.parse(readFileSync(new URL('package.json', PACKAGE_ROOT), 'utf8'));
}
