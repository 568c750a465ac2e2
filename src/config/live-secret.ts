import { isDeepStrictEqual } from 'node:util';
import type { Config } from './load.ts';
import { optionOf } from './options/options.ts';
import { parseSecretFile, watchedFile } from './secret-file.ts';

/**
 * The value of `webhook.secret`. If it comes from the file that WEBHOOK_SECRET_FILE names, it follows changes
 * of that file, so that a secret can be rotated without a restart. An unreadable file or invalid value
 * changes nothing. `onChange` is called for each change, with undefined if the new value is in use, else with
 * the reason why the old one stays.
 */
export function liveSecrets(
  { settings, secretFile: path }: Config,
  onChange: (problem: string | undefined) => void,
) {
  let current = settings['webhook.secret'] ?? [];
  if (path === undefined) return { current, [Symbol.dispose]() {} };

  let problem: string | undefined;
  const readAgain = () => {
    const parsed = parseSecretFile(optionOf('webhook.secret'), path, '/');
    const before = problem;
    problem = 'problem' in parsed ? parsed.problem : undefined;
    const value = 'value' in parsed ? (parsed.value as readonly string[]) : current;
    if (problem === before && isDeepStrictEqual(value, current)) return;
    current = value;
    onChange(problem);
  };
  const watched = watchedFile(path, readAgain);
  return {
    get current() {
      return current;
    },
    [Symbol.dispose]() {
      watched[Symbol.dispose]();
    },
  };
}
