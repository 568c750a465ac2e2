import { flagOf } from '../../config/options/option.ts';
import { moduleOption, optionKeys } from '../../config/options/options.ts';
import { spelledOut } from '../../config/sources/flags.ts';
import { quote } from '../../core/quote.ts';
import { didYouMean } from '../../core/suggest.ts';
import type { CommandOption, CommandUsage } from '../command-usage.ts';
import { UsageError } from '../usage-error.ts';

/** The words behind a command, sorted. */
export interface CommandArguments {
  /** The value of an option; undefined when it is not given. */
  value(flag: string): string | undefined;
  /** All values of an option that can be repeated. */
  values(flag: string): readonly string[];
  has(flag: string): boolean;
  /** What is no option. */
  readonly words: readonly string[];
  /** The options of the configuration, spelled out. */
  readonly config: readonly string[];
}

const configFlags: ReadonlySet<string> = new Set([moduleOption.flag, ...optionKeys.map(flagOf)]);

/** Sorts the words behind a command. Throws UsageError; no message shows what may be a value. */
export function readArguments(usage: CommandUsage, argv: readonly string[]): CommandArguments {
  const options = new Map(usage.options.map((option) => [option.flag, option]));
  const given = new Map<string, string[]>();
  const words: string[] = [];
  const config: string[] = [];
  const problems: string[] = [];
  const known = (word: string) => options.has(nameOf(word)) || configFlags.has(nameOf(word));

  const all = spelledOut(argv);
  for (let index = 0; index < all.length; index++) {
    const word = all[index] ?? '';
    const next = all[index + 1];
    const flag = nameOf(word);
    const option = options.get(flag);
    if (option !== undefined) {
      const wanted = option.value !== undefined && flag === word;
      const behind = wanted && isValue(next);
      // Behind a secret's flag all but a real flag is taken for the secret, which is not to be shown.
      const spoiled = wanted && option.secret === true && next !== undefined && !known(next);
      if (behind || spoiled) index++;
      const value = flag === word ? (behind ? next : undefined) : word.slice(flag.length + 1);
      const problem = faultOf(option, value, given.has(flag));
      if (problem !== undefined) problems.push(problem);
      given.set(flag, [...(given.get(flag) ?? []), value ?? '']);
    } else if (configFlags.has(flag)) {
      config.push(word);
      if (flag === word && next !== undefined && !known(next)) {
        config.push(next);
        index++;
      }
    } else if (word.startsWith('-') && word !== '-') {
      const flags = [...options.keys(), ...configFlags];
      problems.push(`${quote(flag)} is not an option of ${usage.topic}${didYouMean(flag, flags)}`);
    } else words.push(word);
  }
  if (problems.length === 0 && words.length > (usage.mostWords ?? 0)) problems.push(tooManyWords(usage));
  if (problems.length > 0) throw new UsageError(problems, usage.topic);
  return {
    value: (flag) => given.get(flag)?.[0],
    values: (flag) => given.get(flag) ?? [],
    has: (flag) => given.has(flag),
    words,
    config,
  };
}

function nameOf(word: string): string {
  return word.startsWith('--') ? (word.split('=', 1)[0] ?? '') : word;
}

/** A dash alone stands for standard input. */
function isValue(word: string | undefined): boolean {
  return word !== undefined && (word === '-' || !word.startsWith('-'));
}

function faultOf({ flag, ...option }: CommandOption, value: string | undefined, again: boolean) {
  if (again && option.repeatable !== true) return `${flag} is given more than once`;
  if (option.value === undefined) return value === undefined ? undefined : `${flag} takes no value`;
  return value === undefined
    ? `${flag} needs a value; write ${flag}=<${option.value}> for one that begins with "-"`
    : undefined;
}

function tooManyWords({ topic, words, mostWords = 0 }: CommandUsage): string {
  const takes = mostWords === 0 ? 'nothing but options' : `${words}, no more`;
  return `${topic} takes ${takes}; put a value with spaces in quotes`;
}
