import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { constants, inflateSync } from 'node:zlib';
import type { GitInfo } from '../management/info/git-info.ts';
import { readPackedCommit } from './git-pack.ts';

const ID = /^(?:[\da-f]{40}|[\da-f]{64})$/;

/** Reads what is checked out in a folder, without git; undefined when the folder is no checkout. */
export function readGitInfo(folder: string): GitInfo | undefined {
  const files = gitFolders(folder);
  const head = read(files.own, 'HEAD');
  if (head === undefined) return undefined;
  const [, ref] = /^ref: (.+)$/.exec(head) ?? [];
  const id = ref === undefined ? head : idOf(ref, files);
  if (id === undefined || !ID.test(id)) return undefined;
  const branch = ref?.replace(/^refs\/heads\//, '');
  const time = commitTime(join(files.common, 'objects'), id);
  return {
    ...(branch === undefined ? {} : { branch }),
    commit: { id: id.slice(0, 7), ...(time === undefined ? {} : { time }) },
  };
}

interface GitFolders {
  /** Of this checkout. */
  readonly own: string;
  /** Of the repository, which several checkouts can share. */
  readonly common: string;
}

function gitFolders(folder: string): GitFolders {
  const place = join(folder, '.git');
  // In a linked checkout it is a file that names the folder.
  const [, linked] = /^gitdir: (.+)$/.exec(read(place) ?? '') ?? [];
  const own = linked === undefined ? place : resolve(folder, linked);
  const common = read(own, 'commondir');
  return { own, common: common === undefined ? own : resolve(own, common) };
}

function idOf(ref: string, { own, common }: GitFolders): string | undefined {
  const loose = read(own, ref) ?? read(common, ref);
  if (loose !== undefined) return loose;
  const line = read(common, 'packed-refs')
    ?.split('\n')
    .find((packed) => packed.endsWith(` ${ref}`));
  return line?.split(' ', 1)[0];
}

function commitTime(objects: string, id: string): string | undefined {
  const text = commitText(objects, id);
  const [, seconds] = /^committer .*> (\d+) [+-]\d{4}$/m.exec(text ?? '') ?? [];
  return seconds === undefined ? undefined : new Date(Number(seconds) * 1_000).toISOString();
}

function commitText(objects: string, id: string): string | undefined {
  try {
    const loose = readFileSync(join(objects, id.slice(0, 2), id.slice(2)));
    return inflateSync(loose, { finishFlush: constants.Z_SYNC_FLUSH }).toString();
  } catch {
    return readPackedCommit(join(objects, 'pack'), id);
  }
}

/** A small file, without the line break at its end; undefined when it is none. */
function read(...path: readonly string[]): string | undefined {
  try {
    return readFileSync(join(...path), 'utf8').trimEnd();
  } catch {
    return undefined;
  }
}
