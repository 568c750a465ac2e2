import { quote } from '../../core/quote.ts';
import { didYouMean, nearest } from '../../core/suggest.ts';
import { flagOf } from '../options/option.ts';
import { moduleOption, type OptionKey, optionKeys, optionOf } from '../options/options.ts';
import { parseText } from '../options/parse.ts';
import { type Gathering, type Reading, startReading, take } from './reading.ts';

/** What the command line says. */
export interface Flags extends Reading {
  /** The configuration module that `--config` names. */
  readonly module: string | undefined;
}

/** A word like this behind an option's value is the next option, even an unknown one. */
const looksLikeFlag = /^(?:-[a-zA-Z]|--[a-z]+(?:-[a-z]+)*)(?:=|$)/;

/** Words that stand for a flag with its value. */
const shorthands: ReadonlyMap<string, string> = new Map([['--no-migrate', '--database-migrate=false']]);

/** The words of a command line, what is short for an option replaced by it. */
export function spelledOut(argv: readonly string[]): readonly string[] {
  return argv.map((word) => shorthands.get(word) ?? word);
}

/**
 * Reads `--rest-port 9000` and `--rest-port=9000`.
 * No message shows a word that could be a value: it may be part of a secret.
 */
export function readFlags(argv: readonly string[]): Flags {
  const words = spelledOut(argv);
  const reading = startReading();
  const keys = new Map<string, OptionKey>(optionKeys.map((key) => [flagOf(key), key]));
  const known = new Set([moduleOption.flag, ...keys.keys()]);
  const seen = new Set<string>();
  let module: string | undefined;
  let behind: string | undefined;

  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? '';
    if (!isFlag(word, known, behind)) {
      reading.problems.push(strayWord(word, behind));
      continue;
    }
    const flag = nameOf(word);
    const key = keys.get(flag);
    behind = flag;
    let value: string | undefined;
    if (flag.length < word.length) {
      value = word.slice(flag.length + 1);
    } else if (belongsTo(key, words[index + 1], known)) {
      index++;
      value = words[index];
      if (value?.startsWith('-')) value = undefined;
    }

    const repeated = seen.has(flag);
    seen.add(flag);
    if (!known.has(flag)) {
      reading.problems.push(`${quote(flag)} is not an option${didYouMean(flag, known)}`);
    } else if (repeated) {
      spoil(reading, key, `${flag} is given more than once`);
    } else if (value === undefined) {
      spoil(reading, key, `${flag} needs a value; write ${flag}=<value> for one that begins with "-"`);
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

function nameOf(word: string): string {
  return word.split('=', 1)[0] ?? '';
}

/**
 * Whether the word behind a flag without `=` is its value, perhaps a bad one, rather than the next flag.
 * Behind a secret's flag all but a real flag is taken for the secret.
 */
function belongsTo(
  key: OptionKey | undefined,
  next: string | undefined,
  known: ReadonlySet<string>,
): boolean {
  if (next === undefined || known.has(nameOf(next))) return false;
  if (key !== undefined && optionOf(key).secret) return true;
  return !looksLikeFlag.test(next);
}

/** Whether a word where a flag can stand is one, or is so near to one that it is no piece of a secret. */
function isFlag(word: string, known: ReadonlySet<string>, behind: string | undefined): boolean {
  if (!word.startsWith('-')) return false;
  const flag = nameOf(word);
  return behind === undefined || looksLikeFlag.test(word) || nearest(flag, known) !== undefined;
}

function strayWord(word: string, behind: string | undefined): string {
  if (behind === undefined) return `${quote(word)} is not expected; an option begins with "--"`;
  return `a word behind ${quote(behind)} and its value is not expected; put a value with spaces in quotes`;
}

function spoil(reading: Gathering, key: OptionKey | undefined, problem: string): void {
  reading.problems.push(problem);
  if (key !== undefined) reading.broken.add(key);
}
