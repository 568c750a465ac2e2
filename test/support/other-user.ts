import { spawnSync } from 'node:child_process';
import { MAIN } from './portico-process.ts';

/** The user without rights, by number. */
export const NOBODY = 65_534;

/** Words put before a command so that it runs without the rights of root. */
export const AS_NOBODY = ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups'] as const;

/** Why no process can be started as another user here, or false. */
export function withoutOtherUser(): string | false {
  if (process.getuid?.() !== 0) return 'needs root, to run a process as another user';
  const [command, ...words] = [...AS_NOBODY, process.execPath, MAIN, 'version'];
  const { status } = spawnSync(command, words, { cwd: '/', env: {} });
  return status === 0
    ? false
    : 'needs setpriv (util-linux), and a Node.js and sources that all users can read';
}
