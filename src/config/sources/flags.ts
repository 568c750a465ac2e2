import { flagOf } from '../options/option.ts';
import { moduleOption, type OptionKey, optionKeys, optionOf } from '../options/options.ts';
import { parseText } from '../options/parse.ts';
import { type OptionRule, type OptionRules, parseArguments } from './arguments.ts';
import { type Reading, startReading, take } from './reading.ts';

/** What the command line says. */
export interface Flags extends Reading {
  /** The configuration module that `--config` names. */
  readonly module: string | undefined;
}

const keys: ReadonlyMap<string, OptionKey> = new Map(optionKeys.map((key) => [flagOf(key), key]));

/** How the options of the configuration are written. */
export const configRules: OptionRules = new Map<string, OptionRule>([
  [moduleOption.flag, { value: 'value' }],
  ...optionKeys.map((key): [string, OptionRule] => [
    flagOf(key),
    { value: 'value', secret: optionOf(key).secret },
  ]),
  ['--no-migrate', { shortFor: '--database-migrate=false' }],
]);

/** Reads the options of a command line that has nothing else. */
export function readFlags(argv: readonly string[]): Flags {
  const reading = startReading();
  let module: string | undefined;
  for (const { flag = '', value, problem } of parseArguments(argv, configRules)) {
    const key = keys.get(flag);
    if (problem !== undefined) {
      reading.problems.push(problem);
      if (key !== undefined) reading.broken.add(key);
    } else if (key !== undefined) {
      take(reading, key, flag, parseText(optionOf(key), { name: flag, drop: 'leave it out' }, value));
    } else if (value.trim() === '') {
      reading.problems.push(`${flag} is empty; leave it out or name a file`);
    } else {
      module = value;
    }
  }
  return { ...reading, module };
}
