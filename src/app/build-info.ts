import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { PACKAGE_ROOT } from '../core/package-root.ts';
import type { GitSource } from '../management/info/git-info.ts';
import { readGitInfo } from './git-info.ts';

/** How this program was built. */
export interface BuildInfo {
  /** When, in ISO 8601. */
  readonly time?: string;
  readonly git?: GitSource | undefined;
}

/** Reads what the build has written; in the sources `git` asks Git about the checkout. */
export function readBuildInfo(): BuildInfo {
  let text: string;
  try {
    text = readFileSync(new URL('build/build-info.json', PACKAGE_ROOT), 'utf8');
  } catch {
    return { git: () => readGitInfo(fileURLToPath(PACKAGE_ROOT)) };
  }
  return JSON.parse(text) as BuildInfo;
}
