import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';

/** A folder on a disk, because a file system in memory lets an open file be written on. */
export const IMMUTABLE_FOLDER = '/var/tmp';

/** Why no file can be made immutable here, or false. */
export function withoutImmutable(): string | false {
  const script = 'touch "$0" && chattr +i "$0"; code=$?; chattr -i "$0"; rm "$0"; exit $code';
  const { status } = spawnSync('sh', [
    '-c',
    script,
    join(IMMUTABLE_FOLDER, `portico-immutable-${process.pid}`),
  ]);
  return status === 0 ? false : 'needs root, and a file system that knows chattr +i';
}

/** Makes a file immutable, for root too, until it is disposed of. */
export function makeImmutable(path: string): Disposable {
  execFileSync('chattr', ['+i', path]);
  return { [Symbol.dispose]: () => void execFileSync('chattr', ['-i', path]) };
}
