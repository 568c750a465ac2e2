import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { PACKAGE_ROOT } from '../core/package-root.ts';
import type { GitInfo, GitSource } from '../management/endpoints/info.ts';

/** How this program was built. */
interface BuildInfo {
  /** Time of the build, in ISO 8601. */
  readonly time?: string;
  readonly git?: GitSource | undefined;
}

/** The commit of the source checkout, asked for once because a process loads its sources once. */
let checkedOut: Promise<GitInfo | undefined> | undefined;

/** Reads the file that the build has written; in a source checkout `git` asks Git instead. */
export function readBuildInfo(): BuildInfo {
  let text: string;
  try {
    text = readFileSync(new URL('build/build-info.json', PACKAGE_ROOT), 'utf8');
  } catch {
    return {
      git() {
        checkedOut ??= readGitInfo(fileURLToPath(PACKAGE_ROOT));
        return checkedOut;
      },
    };
  }
  return JSON.parse(text) as BuildInfo;
}

const run = promisify(execFile);

/** In milliseconds. */
const TIMEOUT = 5_000;
/** Git sets these while it runs a hook; they would lead to another repository. */
const REDIRECTIONS = ['GIT_DIR', 'GIT_WORK_TREE', 'GIT_COMMON_DIR', 'GIT_OBJECT_DIRECTORY', 'GIT_NAMESPACE'];

/** Asks Git for the commit checked out in a folder; undefined without one. Never rejects. */
export async function readGitInfo(folder: string): Promise<GitInfo | undefined> {
  const [commit, branch] = await Promise.all([
    git(folder, ['-c', 'log.showSignature=false', 'log', '-1', '--format=%H %ct']),
    // Fails when no branch is checked out.
    git(folder, ['symbolic-ref', '--quiet', '--short', 'HEAD']),
  ]);
  const [, id, seconds] = /^([\da-f]{7})[\da-f]* (\d+)$/.exec(commit ?? '') ?? [];
  if (id === undefined) return undefined;
  const time = new Date(Number(seconds) * 1_000).toISOString();
  return { ...(branch === undefined ? {} : { branch }), commit: { id, time } };
}

/** The output of git in a folder that is the root of a checkout; undefined when git fails. */
async function git(folder: string, args: readonly string[]): Promise<string | undefined> {
  const env = {
    ...process.env,
    ...Object.fromEntries(REDIRECTIONS.map((name) => [name, undefined])),
    // A folder inside another checkout does not count.
    GIT_CEILING_DIRECTORIES: dirname(folder),
    GIT_OPTIONAL_LOCKS: '0',
  };
  try {
    const { stdout } = await run('git', args, { cwd: folder, env, timeout: TIMEOUT, windowsHide: true });
    return stdout.trim();
  } catch {
    return undefined;
  }
}
