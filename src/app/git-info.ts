import { execFile } from 'node:child_process';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import type { GitInfo } from '../management/info/git-info.ts';

const run = promisify(execFile);

/** In milliseconds. */
const TIMEOUT = 5_000;
/** What Git itself sets while it runs a hook; it would lead to another repository. */
const REDIRECTIONS = ['GIT_DIR', 'GIT_WORK_TREE', 'GIT_COMMON_DIR', 'GIT_OBJECT_DIRECTORY', 'GIT_NAMESPACE'];

/** Asks git what is checked out in a folder; undefined when that is no checkout, or without git. Never rejects. */
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

/** What git prints in a folder that is the root of a checkout; undefined when it fails. */
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
