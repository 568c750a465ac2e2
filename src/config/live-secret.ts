import { stat } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import type { Config } from './load.ts';
import { type OptionKey, optionOf, type Settings } from './options/options.ts';
import { parseText } from './options/parse.ts';
import { readSecretFile } from './sources/secret-file.ts';

/** How often the file is looked at, in milliseconds. */
const INTERVAL = 1_000;

/** A secret that is read again when its file changes. */
export interface LiveSecret<T> extends Disposable {
  readonly current: T;
}

/** Told of each change: undefined when a new value was taken, else why the old one stays. */
export type OnSecretChange = (problem: string | undefined) => void;

/**
 * The value of a secret option; while it comes from the file that `<NAME>_FILE` names, changes of the file are
 * followed, so that a secret can be rotated without a restart. What cannot be read or is no value changes nothing.
 */
export function liveSecret<K extends OptionKey>(
  { settings, secretFiles }: Config,
  key: K,
  onChange: OnSecretChange,
): LiveSecret<Settings[K]> {
  const path = secretFiles.get(key);
  let current = settings[key];
  if (path === undefined) return { current, [Symbol.dispose]() {} };

  const option = optionOf(key);
  const variable = `${option.env}_FILE`;
  const place = { name: `the file that ${variable} names`, drop: `unset ${variable}` };
  let problem: string | undefined;
  const readAgain = () => {
    const content = readSecretFile(variable, path, '/');
    const parsed = 'problem' in content ? content : parseText(option, place, content.text);
    const before = problem;
    problem = 'problem' in parsed ? parsed.problem : undefined;
    if ('value' in parsed) {
      if (before === undefined && isDeepStrictEqual(parsed.value, current)) return;
      current = parsed.value as Settings[K];
    }
    onChange(problem);
  };

  // Not known before the first look: the file may have changed since the configuration was read.
  let known: string | undefined;
  let isLooking = false;
  let closed = false;
  const look = () => {
    // A folder of the network may take its time.
    if (isLooking) return;
    isLooking = true;
    // Looking at the file also follows a link that is exchanged, as Kubernetes does.
    stat(path, (error, stats) => {
      isLooking = false;
      const state = error === null ? `${stats.ino} ${stats.size} ${stats.mtimeMs}` : String(error.code);
      if (closed || state === known) return;
      known = state;
      readAgain();
    });
  };
  const timer = setInterval(look, INTERVAL).unref();
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
