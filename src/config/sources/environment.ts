import { optionKeys, optionOf } from '../options/options.ts';
import { parseText } from '../options/parse.ts';
import { type Reading, startReading, take } from './reading.ts';
import { parseSecretFile } from './secret-file.ts';

const RENAMED = [
  ['MANAGEMENT_TRUST_FORWARDED', optionOf('http.trustProxy').env],
  ['MANAGEMENT_CONSOLE_HOSTS', optionOf('http.hosts').env],
] as const;

/** Environment variables. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Reads the variables of all options and, for secrets, the files that `<NAME>_FILE` variables name. */
export function readEnvironment(env: Environment, cwd: string): Reading {
  const reading = startReading();
  for (const key of optionKeys) {
    const option = optionOf(key);
    const text = env[option.env];
    const file = option.secret ? env[`${option.env}_FILE`] : undefined;
    if (text !== undefined && file !== undefined) {
      reading.broken.add(key);
      reading.problems.push(`${option.env} and ${option.env}_FILE are both set; unset one of them`);
    } else if (file !== undefined) {
      take(reading, key, `${option.env}_FILE`, parseSecretFile(option, file, cwd));
    } else if (text !== undefined) {
      take(reading, key, option.env, parseText(option, { name: option.env, drop: 'unset it' }, text));
    }
  }
  for (const [name, now] of RENAMED) {
    if (env[name] !== undefined) reading.problems.push(`${name} is not read any more; did you mean ${now}?`);
  }
  return reading;
}
