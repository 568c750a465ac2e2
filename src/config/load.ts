import type { ConfigCode } from './code.ts';
import { ConfigError } from './config-error.ts';
import { crossCheck } from './cross-checks.ts';
import { type Environment, readEnvironment } from './environment.ts';
import { readFlags } from './flags.ts';
import { secretTexts } from './hide-secrets.ts';
import { loadModule } from './load-module.ts';
import { moduleOption, optionKeys, optionOf, type Settings } from './options.ts';
import type { PropertySource } from './property-source.ts';
import type { Reading } from './reading.ts';
import { propertySources } from './sources.ts';

/** What a start is configured from. */
export interface ConfigSource {
  /** The words behind the command. */
  readonly argv: readonly string[];
  readonly env: Environment;
  /** The working folder, absolute: where portico.config.* is looked for and relative paths begin. */
  readonly cwd: string;
}

/** The whole configuration of a process. */
export interface Config {
  readonly settings: Settings;
  /** Where values come from, the strongest first. */
  readonly sources: readonly PropertySource[];
  readonly code: ConfigCode;
  /** The configuration module, absolute; undefined when there is none. */
  readonly file: string | undefined;
}

/**
 * Reads flags, environment, configuration module and defaults, the earlier ones winning.
 * Rejects with one ConfigError that lists all problems of all of them.
 */
export async function loadConfig({ argv, env, cwd }: ConfigSource): Promise<Config> {
  const flags = readFlags(argv);
  const environment = readEnvironment(env, cwd);
  const secrets = secretTexts(env, [flags, environment]);
  const module = await loadModule({ cwd, flag: flags.module, variable: env[moduleOption.env], secrets });

  const readings = [flags, environment, module.reading];
  const settings = merge(readings);
  const problems = readings.flatMap((reading) => reading.problems);
  if (module.complete) {
    const broken = new Set(readings.flatMap((reading) => [...reading.broken]));
    problems.push(...crossCheck({ settings, broken, setsUsers: module.setsUsers, users: module.code.users }));
  }
  if (problems.length > 0) throw new ConfigError(problems);
  const sources = propertySources(flags, env, module.file, module.reading);
  return { settings, sources, code: module.code, file: module.file?.path };
}

/** The strongest value of every option. */
function merge(readings: readonly Reading[]): Settings {
  const values = optionKeys.map((key) => {
    const found = readings.find((reading) => reading.found.has(key))?.found.get(key);
    return [key, found === undefined ? optionOf(key).default : found.value];
  });
  // Every key is there, with a value that its own option read.
  return Object.fromEntries(values) as Settings;
}
