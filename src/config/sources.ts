import { parseArgs } from 'node:util';
import { nearest, quote } from '../core/text.ts';
import { flagOf, type Parsed, parseText } from './options/option.ts';
import {
  limitKeys,
  moduleOption,
  type OptionKey,
  optionKeys,
  optionOf,
  pathOf,
  type SettingKey,
  type Settings,
  settingKeys,
} from './options/options.ts';
import { type Environment, parseSecretFile } from './secrets.ts';

/** The syntax of one option. */
export interface OptionRule {
  /** The name of its value in messages; undefined for a switch. */
  readonly value?: string;
  /** Whether words after it may be parts of a secret, so that no message shows them. Default: false. */
  readonly secret?: boolean;
  /** Whether it can be given more than once. Default: false. */
  readonly repeatable?: boolean;
  /** The option and value that a switch stands for: `--database-migrate=false`. */
  readonly shortFor?: string;
  /** What to do instead of an option that is not read any more. */
  readonly retired?: string;
}

/** The options of a command line by flag. */
export type OptionRules = ReadonlyMap<string, OptionRule>;

/** An option with its value, or a positional word. */
export interface Argument {
  /** Undefined for a word. */
  readonly flag: string | undefined;
  /** The value of the option, empty for a switch; or the word. */
  readonly value: string;
  /** Why the option is invalid; for a word, the problem to report if no word is expected there. */
  readonly problem: string | undefined;
  /** The argument as written, with a short form expanded. */
  readonly written: readonly string[];
}

/** An unknown option that resembles no known one. */
const UNKNOWN: OptionRule = { value: 'value' };

/** A word like this after an option without a value is the next option, even an unknown one. */
const looksLikeFlag = /^(?:-[a-zA-Z]|--[a-z]+(?:-[a-z]+)*)(?:=|$)/;

/**
 * Splits a command line into options and words: `--rest-port 9000`, `--rest-port=9000`, `--json`. Never
 * throws; each word is part of one argument. No problem shows a word that could be a value, as it may be part
 * of a secret. `topic` names the command in messages.
 */
export function parseArguments(
  argv: readonly string[],
  rules: OptionRules,
  topic?: string,
): readonly Argument[] {
  const tokens = tokenize(argv.map((word) => rules.get(word)?.shortFor ?? word));
  const found: Argument[] = [];
  const seen = new Set<string>();
  let behind: string | undefined;
  for (let at = 0; at < tokens.length; at++) {
    const { word, flag, inline } = tokens[at] as Token;
    if (flag === undefined || (behind !== undefined && !isOption(word, flag, rules))) {
      found.push({ flag: undefined, value: word, problem: strayWord(word, behind), written: [word] });
      continue;
    }
    // Treats an unknown option as the one it probably means, so that its value is not taken for a word.
    const rule = rules.get(flag) ?? rules.get(meant(flag, rules)[0] ?? '') ?? UNKNOWN;
    const next = tokens[at + 1];
    const written = [word];
    let value = inline;
    if (value === undefined && rule.value !== undefined && next !== undefined && takes(rule, next, rules)) {
      at++;
      written.push(next.word);
      // A single dash, for standard input, is a value but no secret.
      if (next.flag === undefined && !(rule.secret && next.word === '-')) value = next.word;
    }
    const problem = rules.has(flag)
      ? faultOf(flag, rule, value, seen.has(flag))
      : `${quote(flag)} is not an option${topic === undefined ? '' : ` of ${topic}`}${suggest(flag, rules)}`;
    found.push({ flag, value: value ?? '', problem, written });
    seen.add(flag);
    behind = flag;
  }
  return found;
}

/**
 * The options that an unknown one may mean: those that end with it, as `--rest-port` ends with `--port`, or
 * the nearest.
 */
function meant(flag: string, rules: OptionRules): readonly string[] {
  const end = flag.slice(1);
  const flags = Array.from(rules).flatMap(([each, { retired }]) => (retired === undefined ? [each] : []));
  const longer = /^-[a-z]/.test(end) ? flags.filter((each) => each.endsWith(end)) : [];
  const best = nearest(flag, flags);
  if (longer.length > 0) return longer;
  return best === undefined ? [] : [best];
}

function suggest(flag: string, rules: OptionRules): string {
  const flags = meant(flag, rules);
  const last = flags.at(-1);
  if (last === undefined) return '';
  return `; did you mean ${flags.length === 1 ? last : `${flags.slice(0, -1).join(', ')} or ${last}`}?`;
}

/** Shows a word only if no option before it can have a secret value. */
function strayWord(text: string, behind: string | undefined): string {
  if (behind === undefined) return `${quote(text)} is not expected; an option begins with "--"`;
  return `a word after ${quote(behind)} and its value is not expected; put a value with spaces in quotes`;
}

/** One word of the command line. */
interface Token {
  readonly word: string;
  /** The part before `=`, if the word is written like an option. */
  readonly flag: string | undefined;
  /** The part after `=`. */
  readonly inline: string | undefined;
}

/**
 * Declares no option to parseArgs, which would take the word after a declared option as its value even if
 * that word is another option.
 */
function tokenize(argv: readonly string[]): readonly Token[] {
  const { tokens } = parseArgs({ args: [...argv], strict: false, allowPositionals: true, tokens: true });
  // A group of short options, `-abc`, is several tokens with the index of one word.
  const first = tokens.filter(({ index }, i) => index !== tokens[i - 1]?.index);
  return first.map((token) => {
    const word = argv[token.index] ?? '';
    return {
      word,
      flag: token.kind === 'positional' ? undefined : word.split('=', 1)[0],
      inline: token.kind === 'option' ? token.value : undefined,
    };
  });
}

/**
 * Whether a word after an option and its value is an option too, rather than a piece of a secret that begins
 * with a dash.
 */
function isOption(word: string, flag: string, rules: OptionRules): boolean {
  return looksLikeFlag.test(word) || flag === '--' || nearest(flag, rules.keys()) !== undefined;
}

/**
 * Whether the next word is the value of an option, valid or not. A secret takes any word but a known option.
 */
function takes(rule: OptionRule, { word, flag }: Token, rules: OptionRules): boolean {
  if (flag === undefined) return true;
  return !rules.has(flag) && (rule.secret === true || !looksLikeFlag.test(word));
}

function faultOf(flag: string, rule: OptionRule, value: string | undefined, again: boolean) {
  if (rule.retired !== undefined) return `${flag} is not read any more; ${rule.retired}`;
  if (again && rule.repeatable !== true) return `${flag} is given more than once`;
  if (rule.value === undefined) return value === undefined ? undefined : `${flag} takes no value`;
  if (value !== undefined) return undefined;
  return `${flag} needs a value; write ${flag}=<${rule.value}> for one that begins with "-"`;
}

/** Variables that are not read any more, with the remedy. */
const RETIRED: readonly (readonly [string, string])[] = [
  ['MANAGEMENT_TRUST_FORWARDED', `did you mean ${optionOf('http.trustProxy').env}?`],
  ['MANAGEMENT_CONSOLE_HOSTS', `did you mean ${optionOf('http.hosts').env}?`],
  ...limitKeys.map((key) => [variableOf(pathOf(key)), setInModule(key)] as const),
];

/** The variable of such a key. */
function variableOf(key: string): string {
  return key.replace(/[A-Z]/g, '_$&').replaceAll('.', '_').toUpperCase();
}

function setInModule(key: string): string {
  return `set ${key} in the configuration module`;
}

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
  for (const [name, remedy] of RETIRED) {
    if (env[name] !== undefined) reading.problems.push(`${name} is not read any more; ${remedy}`);
  }
  return reading;
}

/** The options on the command line. */
interface Flags extends Reading {
  /** The configuration module that `--config` names. */
  readonly module: string | undefined;
}

const keys: ReadonlyMap<string, OptionKey> = new Map(optionKeys.map((key) => [flagOf(key), key]));

/** The syntax of the configuration's options. */
export const configRules: OptionRules = new Map<string, OptionRule>([
  [moduleOption.flag, { value: 'value' }],
  ...optionKeys.map((key): [string, OptionRule] => [
    flagOf(key),
    { value: 'value', secret: optionOf(key).secret },
  ]),
  ...limitKeys.map((key): [string, OptionRule] => [
    flagOf(pathOf(key)),
    { value: 'value', retired: setInModule(key) },
  ]),
  ['--no-migrate', { shortFor: '--database-migrate=false' }],
]);

/** Reads a command line that contains only options. */
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

/** A value of a source, and whether it is secret. */
export interface Property {
  readonly value: unknown;
  readonly origin: string;
  readonly secret: boolean;
}

/** A source of configuration with its properties. */
export interface PropertySource {
  readonly name: string;
  readonly properties: ReadonlyMap<string, Property>;
  /** The names of options in this source by key, for options whose name differs from the key. */
  readonly aliases?: ReadonlyMap<string, string>;
}

/**
 * A property by its name in this source, or by the name of the option that it sets: `rest.port` is REST_PORT.
 */
export function findProperty({ properties, aliases }: PropertySource, name: string) {
  const key = properties.has(name) ? name : aliases?.get(name);
  const property = key === undefined ? undefined : properties.get(key);
  return key === undefined || property === undefined ? undefined : { ...property, key };
}

type Properties = PropertySource['properties'];

/**
 * All sources of configuration, highest precedence first; `file` is the name of the module, if there is one.
 */
export function propertySources(
  flags: Flags,
  env: Environment,
  environment: Reading,
  file: string | undefined,
  module: Reading,
): readonly PropertySource[] {
  const sources: PropertySource[] = [
    { name: 'commandLineArgs', properties: flagProperties(flags) },
    { name: 'systemEnvironment', properties: environmentProperties(env), aliases: originsOf(environment) },
  ];
  if (file !== undefined) {
    sources.push({ name: `Config resource "${file}"`, properties: readProperties(module) });
  }
  return [...sources, { name: 'defaults', properties: defaultProperties() }];
}

function flagProperties(flags: Flags): Properties {
  const properties = new Map(readProperties(flags));
  if (flags.module !== undefined) {
    properties.set(moduleOption.key, { value: flags.module, origin: moduleOption.flag, secret: false });
  }
  return properties;
}

function readProperties({ found }: Reading): Properties {
  return new Map([...found].map(([key, entry]) => [key, { ...entry, secret: optionOf(key).secret }]));
}

function originsOf({ found }: Reading): ReadonlyMap<string, string> {
  return new Map(Array.from(found, ([key, { origin }]) => [key, origin]));
}

/** All variables, because operators look for PATH and HOME here too. */
export function environmentProperties(env: Environment): Properties {
  const secrets = new Set(optionKeys.filter((key) => optionOf(key).secret).map((key) => optionOf(key).env));
  const set = Object.entries(env).filter(([, value]) => value !== undefined);
  return new Map(
    set.map(([name, value]) => {
      const origin = `System Environment Property "${name}"`;
      return [name, { value, origin, secret: secrets.has(name) }];
    }),
  );
}

function defaultProperties(): Properties {
  const set = settingKeys.filter((key) => optionOf(key).default !== undefined);
  return new Map(
    set.map((key) => {
      const { default: value, secret } = optionOf(key);
      return [key, { value, origin: 'default', secret }];
    }),
  );
}

/** A value of one source, with its origin. */
export interface Found {
  readonly value: unknown;
  readonly origin: string;
}

/** The options that one source sets, parsed. */
export interface Reading {
  readonly found: ReadonlyMap<SettingKey, Found>;
  /** The options with an invalid value in this source; each has a line in `problems`. */
  readonly broken: ReadonlySet<SettingKey>;
  readonly problems: readonly string[];
}

/** A reading under construction. */
interface Gathering extends Reading {
  readonly found: Map<SettingKey, Found>;
  readonly broken: Set<SettingKey>;
  readonly problems: string[];
}

/** A reading that has found nothing yet. */
export function startReading(): Gathering {
  return { found: new Map(), broken: new Set(), problems: [] };
}

/** Records the parsed value of an option, or its problem. */
export function take(reading: Gathering, key: SettingKey, origin: string, parsed: Parsed): void {
  if ('value' in parsed) {
    reading.found.set(key, { value: parsed.value, origin });
  } else {
    reading.broken.add(key);
    reading.problems.push(parsed.problem);
  }
}

const secretKeys = optionKeys.filter((key) => optionOf(key).secret);

/** The values of all secret options in the sources, valid or not, longest first. */
export function secretTexts(env: Environment, readings: readonly Reading[]): readonly string[] {
  const values: unknown[] = secretKeys.flatMap((key) => [
    env[optionOf(key).env],
    ...readings.flatMap((reading) => reading.found.get(key)?.value),
  ]);
  const texts = values.filter((value) => typeof value === 'string' && value.trim() !== '') as string[];
  return texts.sort((a, b) => b.length - a.length);
}

/** An option with its effective value. */
export interface EffectiveOption {
  readonly key: SettingKey;
  readonly value: unknown;
  /** The origin of the value; undefined for a default. */
  readonly origin: string | undefined;
  readonly secret: boolean;
}

/** All options with their effective values and origins, in the order of the documentation. */
export function effectiveOptions(
  settings: Settings,
  sources: readonly PropertySource[],
): readonly EffectiveOption[] {
  return settingKeys.map((key) => {
    const origins = sources.map((source) => findProperty(source, key)?.origin);
    return {
      key,
      value: settings[key],
      origin: origins.find((origin) => origin !== undefined),
      secret: optionOf(key).secret,
    };
  });
}
