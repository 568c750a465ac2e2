import { chmodSync, closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { accessProblem } from '../sqlite/access-problem.ts';
import { modeOfCopy } from '../sqlite/private-files.ts';
import { BackupError } from './backup-error.ts';
import type { CopiedFile, OnCopy } from './copied-file.ts';
import { runCopy } from './run-copy.ts';

/**
 * Writes a backup of an SQLite file, which appears under its name only when it is whole and checked. Rejects as `runCopy`
 * does, and with BackupError when `to` exists.
 */
export async function writeBackup(
  from: string,
  to: string,
  { live, onCopy, signal }: { readonly live: boolean; readonly onCopy: OnCopy; readonly signal: AbortSignal },
): Promise<CopiedFile> {
  if (existsSync(to)) {
    throw new BackupError(`There is a file ${to} already. Name another one, or remove it first.`);
  }
  const partial = `${to}.partial`;
  const problem = accessProblem(partial);
  if (problem !== undefined) throw new BackupError(`No backup can be written: ${problem}`);
  try {
    const copied = await runCopy({ from, to: partial, live }, onCopy, signal);
    // It holds what the database holds, so nobody else may read it.
    chmodSync(partial, modeOfCopy(from));
    renameSync(partial, to);
    syncFolder(dirname(to));
    return copied;
  } finally {
    for (const path of [partial, `${partial}-journal`]) rmSync(path, { force: true });
  }
}

/** Makes a rename in a folder durable, where the system can. */
export function syncFolder(path: string): void {
  if (process.platform === 'win32') return;
  const folder = openSync(path, 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
