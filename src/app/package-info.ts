import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { GitInfo } from '../management/info/git-info.ts';
import { readGitInfo } from './git-info.ts';

/** What package.json says of this program. */
export interface PackageInfo {
  readonly name: string;
  readonly version: string;
}

/** What is known of how this program was built. */
export interface BuildInfo {
  /** When, in ISO 8601. */
  readonly time?: string;
  readonly git?: GitInfo | undefined;
}

/** Where package.json is: two folders up, in the sources and in the built package alike. */
const ROOT = new URL('../../', import.meta.url);

/** Reads package.json. */
export function readPackageInfo(): PackageInfo {
  const text = readFileSync(new URL('package.json', ROOT), 'utf8');
  const { name, version } = JSON.parse(text) as PackageInfo;
  return { name, version };
}

/** Reads what the build has left behind; where nothing was built, looks at the checkout if `git` is wanted. */
export function readBuildInfo(git: boolean): BuildInfo {
  let text: string;
  try {
    text = readFileSync(new URL('build/build-info.json', ROOT), 'utf8');
  } catch {
    return git ? { git: readGitInfo(fileURLToPath(ROOT)) } : {};
  }
  return JSON.parse(text) as BuildInfo;
}
