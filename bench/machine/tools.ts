import { spawnSync } from 'node:child_process';

/** Whether a program is installed; `flag` must make it print something and exit. */
export function hasTool(name: string, flag: string): boolean {
  return spawnSync(name, [flag], { stdio: 'ignore' }).error === undefined;
}

/** The first line that a program prints for its version flag; undefined if it is not installed. */
export function toolVersion(name: string, flag: string): string | undefined {
  const { error, stdout, stderr } = spawnSync(name, [flag], { encoding: 'utf8' });
  return error === undefined ? (stdout || stderr).split('\n')[0]?.trim() : undefined;
}
