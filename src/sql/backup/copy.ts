import { dirname, extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { PACKAGE_ROOT } from '../../core/package-root.ts';
import { openFailure } from '../sqlite/migrate.ts';
import { BackupError } from './backup-error.ts';

/** The source and the destination of a copy. */
export interface CopyJob {
  readonly from: string;
  /** Overwritten if it exists. */
  readonly to: string;
  /** Whether a service may be writing to `from`; the copy then takes at most half of the disk's time. */
  readonly live: boolean;
}

/** A finished copy, whose integrity and row counts were checked. */
export interface CopiedFile {
  readonly bytes: number;
  /** By table. */
  readonly rows: Readonly<Record<string, number>>;
}

/**
 * Called with the number of copied pages and the total, then with the number of checked tables and the total.
 */
export type OnCopy = (step: 'copy' | 'check', done: number, total: number) => void;

type Message =
  | { readonly step: 'copy' | 'check'; readonly done: number; readonly total: number }
  | { readonly copied: CopiedFile }
  | { readonly failed: string; readonly expected: boolean };

/**
 * Copies and checks a file on a separate thread. Rejects with BackupError, DatabaseOpenError or the signal's
 * reason; the file at `to` is then incomplete.
 */
export async function runCopy(job: CopyJob, onCopy: OnCopy, signal: AbortSignal): Promise<CopiedFile> {
  signal.throwIfAborted();
  // `.ts` when run from source, `.js` in the built package.
  const script = new URL(`src/sql/backup/copy-thread${extname(import.meta.url)}`, PACKAGE_ROOT);
  const worker = new Worker(script, { name: 'backup', workerData: job });
  const end = Promise.withResolvers<CopiedFile>();
  const stop = () => {
    end.reject(signal.reason);
    void worker.terminate();
  };
  signal.addEventListener('abort', stop, { once: true });
  worker.on('message', (message: Message) => {
    if ('copied' in message) end.resolve(message.copied);
    else if ('failed' in message) end.reject(failureOf(job, message));
    else onCopy(message.step, message.done, message.total);
  });
  worker.on('error', (error) => end.reject(error));
  const exited = new Promise<void>((resolve) => {
    worker.on('exit', () => {
      end.reject(new BackupError('The backup thread ended early. Try again.'));
      resolve();
    });
  });
  try {
    return await end.promise;
  } finally {
    signal.removeEventListener('abort', stop);
    await exited;
  }
}

function failureOf(
  { from, to }: CopyJob,
  { failed, expected }: { failed: string; expected: boolean },
): Error {
  if (expected) return new BackupError(failed);
  if (/disk is full|ENOSPC/.test(failed)) {
    return new BackupError(`The disk is full. Free some space in ${dirname(to)}.`);
  }
  return openFailure(from, new Error(failed));
}
