import { readFileSync } from 'node:fs';

/** What package.json says of this program. */
export interface PackageInfo {
  readonly name: string;
  readonly version: string;
}

/** Reads package.json, which stands one folder above the sources and above the built files alike. */
export function readPackageInfo(): PackageInfo {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  const { name, version } = JSON.parse(text) as PackageInfo;
  return { name, version };
}
