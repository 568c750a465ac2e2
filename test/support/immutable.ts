import { execFileSync, spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Why no file can be made immutable here, or false. */
export function withoutImmutable(): string | false {
  const script = 'touch "$0" && chattr +i "$0"; code=$?; chattr -i "$0"; rm "$0"; exit $code';
  const { status } = spawnSync('sh', ['-c', script, join(tmpdir(), `portico-immutable-${process.pid}`)]);
  return status === 0 ? false : 'needs root, and a file system that knows chattr +i';
}

/** Makes a file immutable, for root too, until it is disposed of. */
export function makeImmutable(path: string): Disposable {
  execFileSync('chattr', ['+i', path]);
  return { [Symbol.dispose]: () => void execFileSync('chattr', ['-i', path]) };
}
