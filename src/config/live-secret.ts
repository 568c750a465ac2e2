import { type StatsListener, unwatchFile, watchFile } from 'node:fs';
import type { Config } from './load.ts';
import { type OptionKey, optionOf, type Settings } from './options.ts';
import { parseText } from './parse.ts';
import { readSecretFile } from './secret-file.ts';

/** How often the file is looked at, in milliseconds. */
const INTERVAL = 1_000;

/** A secret that is read again when its file changes. */
export interface LiveSecret<T> extends Disposable {
  readonly current: T;
}

/** Told of each change: undefined when the new value was taken, else why the old one stays. */
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
  const listener: StatsListener = (now, before) => {
    if (now.mtimeMs === before.mtimeMs && now.ino === before.ino && now.size === before.size) return;
    const content = readSecretFile(variable, path, '/');
    if ('problem' in content) return onChange(content.problem);
    const place = { name: `the file that ${variable} names`, drop: `unset ${variable}` };
    const parsed = parseText(option, place, content.text);
    if ('problem' in parsed) return onChange(parsed.problem);
    current = parsed.value as Settings[K];
    onChange(undefined);
  };
  // Looking at the file also follows a link that is exchanged, as Kubernetes does; and it keeps no process alive.
  watchFile(path, { interval: INTERVAL, persistent: false }, listener);
  return {
    get current() {
      return current;
    },
    [Symbol.dispose]: () => unwatchFile(path, listener),
  };
}
