import { unwatchFile, watchFile } from 'node:fs';

/** Polling interval of a file, in milliseconds. */
const INTERVAL = 1_000;

/** Calls `readAgain` when a file may have changed, until the result is disposed of. It follows a symbolic link, which Kubernetes replaces. */
export function watchedFile(path: string, readAgain: () => void): Disposable {
  watchFile(path, { interval: INTERVAL, persistent: false }, readAgain);
  // The file may have changed between the start and the first poll.
  const afterFirst = setTimeout(readAgain, INTERVAL).unref();
  return {
    [Symbol.dispose]() {
      clearTimeout(afterFirst);
      unwatchFile(path, readAgain);
    },
  };
}
