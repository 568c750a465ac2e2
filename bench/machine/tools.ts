import { spawnSync } from 'node:child_process';

/** Whether a program is there; `word` is one that makes it say something and end. */
export function hasTool(name: string, word: string): boolean {
  return spawnSync(name, [word], { stdio: 'ignore' }).error === undefined;
}

/** The first line of what a program says about its version. */
export function toolVersion(name: string, word: string): string | undefined {
  const { error, stdout, stderr } = spawnSync(name, [word], { encoding: 'utf8' });
  return error === undefined ? (stdout || stderr).split('\n')[0]?.trim() : undefined;
}
