import { stat } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import type { Config } from './load.ts';
import { type OptionKey, optionOf, type Settings } from './options/options.ts';
import { parseSecretFile } from './sources/secret-file.ts';

/** Polling interval of the file, in milliseconds. */
const INTERVAL = 1_000;

/** A secret that follows changes of its file. */
export interface LiveSecret<T> extends Disposable {
  readonly current: T;
}

/** Called for each change: with undefined when the new value is used, else with the reason why the old one stays. */
export type OnSecretChange = (problem: string | undefined) => void;

/**
 * The value of a secret option. If it comes from the file that `<NAME>_FILE` names, it follows changes of that file,
 * so that a secret can be rotated without a restart. An unreadable file or invalid value changes nothing.
 */
export function liveSecret<K extends OptionKey>(
  { settings, secretFiles }: Config,
  key: K,
  onChange: OnSecretChange,
): LiveSecret<Settings[K]> {
  const path = secretFiles.get(key);
  let current = settings[key];
  if (path === undefined) return { current, [Symbol.dispose]() {} };

  let problem: string | undefined;
  const readAgain = () => {
    const parsed = parseSecretFile(optionOf(key), path, '/');
    const before = problem;
    problem = 'problem' in parsed ? parsed.problem : undefined;
    if ('value' in parsed) {
      if (before === undefined && isDeepStrictEqual(parsed.value, current)) return;
      current = parsed.value as Settings[K];
    }
    onChange(problem);
  };

  // Undefined before the first poll: the file may have changed since the configuration was read.
  let lastState: string | undefined;
  let isPolling = false;
  let closed = false;
  const poll = () => {
    // On a network file system a poll can take longer than the interval.
    if (isPolling) return;
    isPolling = true;
    // stat follows a symbolic link, which Kubernetes replaces.
    stat(path, (error, stats) => {
      isPolling = false;
      const state = error === null ? `${stats.ino} ${stats.size} ${stats.mtimeMs}` : String(error.code);
      if (closed || state === lastState) return;
      lastState = state;
      readAgain();
    });
  };
  const timer = setInterval(poll, INTERVAL).unref();
  return {
    get current() {
      return current;
    },
    [Symbol.dispose]() {
      closed = true;
      clearInterval(timer);
    },
  };
}
