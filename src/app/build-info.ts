import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { PACKAGE_ROOT } from '../core/package-root.ts';
import type { GitInfo } from '../management/info/git-info.ts';
import { readGitInfo } from './git-info.ts';

/** What is known of how this program was built. */
export interface BuildInfo {
  /** When, in ISO 8601. */
  readonly time?: string;
  readonly git?: GitInfo | undefined;
}

/** Reads what the build has left behind; where nothing was built, looks at the checkout if `git` is wanted. */
export function readBuildInfo(git: boolean): BuildInfo {
  let text: string;
  try {
    text = readFileSync(new URL('build/build-info.json', PACKAGE_ROOT), 'utf8');
  } catch {
    return git ? { git: readGitInfo(fileURLToPath(PACKAGE_ROOT)) } : {};
  }
  return JSON.parse(text) as BuildInfo;
}
