import type { Config } from '../app/load-config.ts';
import {
  type Argument,
  configRules,
  type OptionRule,
  type OptionRules,
  parseArguments,
} from '../config/sources.ts';
import { type CommandIo, type CommandUsage, UsageError } from './command.ts';

export interface CommandArguments {
  /** The value of an option; undefined if it is not given. */
  value(flag: string): string | undefined;
  /** All values of an option that can be repeated. */
  values(flag: string): readonly string[];
  has(flag: string): boolean;
  /** The positional arguments. */
  readonly words: readonly string[];
  /** The options of the configuration, as written. */
  readonly config: readonly string[];
  /** The configuration of a service that is called with these options. Rejects with ConfigError. */
  configuration(): Promise<Config>;
  /** The error for arguments that cannot be used. */
  misuse(...problems: readonly string[]): UsageError;
}

/**
 * Parses the arguments of a command. Throws UsageError with all problems, unless only options of the
 * configuration are wrong: loading it reports those with its other problems. No message shows what may be
 * part of a secret. The configuration is read from `env` too.
 */
export function readArguments(
  usage: CommandUsage,
  argv: readonly string[],
  { env }: Pick<CommandIo, 'env'>,
): CommandArguments {
  const { topic, options, secret = [], repeatable = [], maxWords = 0, standalone = false } = usage;
  const shared: OptionRules = standalone ? new Map() : configRules;
  const own = Object.keys(options).map((head): [string, OptionRule] => {
    const [flag = '', value] = head.split(/ <|>$/);
    return [
      flag,
      {
        ...(value !== undefined && { value }),
        secret: secret.includes(flag),
        repeatable: repeatable.includes(flag),
      },
    ];
  });
  const found = parseArguments(argv, new Map([...own, ...shared]), topic);
  const misuse = (...problems: readonly string[]) => new UsageError(problems, topic);

  const isShared = ({ flag }: Argument) => flag !== undefined && shared.has(flag);
  const words = found.filter(({ flag }) => flag === undefined).map(({ value }) => value);
  const config = found.filter(isShared);
  const problems = found.filter((argument) => !isShared(argument)).flatMap(problemsOf);
  if (problems.length === 0 && words.length > maxWords) problems.push(tooManyWords(usage));
  if (problems.length > 0) throw misuse(...problems, ...config.flatMap(problemsOf));

  const written = config.flatMap((argument) => argument.written);
  const values = (flag: string) => found.filter((each) => each.flag === flag).map(({ value }) => value);
  return {
    value: (flag) => values(flag)[0],
    values,
    has: (flag) => values(flag).length > 0,
    words,
    config: written,
    async configuration() {
      // Loaded only by the commands that need it.
      const { loadConfig } = await import('../app/load-config.ts');
      return loadConfig({ argv: written, env, cwd: process.cwd() });
    },
    misuse,
  };
}

/** A positional argument is a problem only if it looks like an option. */
function problemsOf({ flag, value, problem }: Argument): readonly string[] {
  const allowed = flag === undefined && (value === '-' || !value.startsWith('-'));
  return problem === undefined || allowed ? [] : [problem];
}

function tooManyWords({ topic, words, maxWords = 0 }: CommandUsage): string {
  const takes = maxWords === 0 ? 'nothing but options' : `${words}, no more`;
  return `${topic} takes ${takes}; put a value with spaces in quotes`;
}
