import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { GitSource } from '../management/info/git-info.ts';
import { readGitInfo } from './git-info.ts';

/** Name and version of this program, from package.json. */
export interface PackageInfo {
  readonly name: string;
  readonly version: string;
}

/** How this program was built. */
export interface BuildInfo {
  /** When, in ISO 8601. */
  readonly time?: string;
  readonly git?: GitSource | undefined;
}

/** Where package.json is: two folders up, in the sources and in the built package alike. */
const ROOT = new URL('../../', import.meta.url);

/** Reads package.json. */
export function readPackageInfo(): PackageInfo {
  const text = readFileSync(new URL('package.json', ROOT), 'utf8');
  const { name, version } = JSON.parse(text) as PackageInfo;
  return { name, version };
}

/** Reads what the build has written; in the sources `git` asks Git about the checkout. */
export function readBuildInfo(): BuildInfo {
  let text: string;
  try {
    text = readFileSync(new URL('build/build-info.json', ROOT), 'utf8');
  } catch {
    return { git: () => readGitInfo(fileURLToPath(ROOT)) };
  }
  return JSON.parse(text) as BuildInfo;
}
