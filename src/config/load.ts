import { resolve } from 'node:path';
import { ConfigError } from './config-error.ts';
import { crossCheck } from './cross-checks.ts';
import { loadModule } from './module/load-module.ts';
import { moduleOption, type OptionKey, optionKeys, optionOf, type Settings } from './options/options.ts';
import type { ConfigCode } from './schema/code.ts';
import { secretTexts } from './secret-texts.ts';
import { type Environment, readEnvironment } from './sources/environment.ts';
import { readFlags } from './sources/flags.ts';
import type { PropertySource } from './sources/property-source.ts';
import { propertySources } from './sources/property-sources.ts';
import type { Reading } from './sources/reading.ts';
import { createSecretResolver, type SecretResolver } from './sources/secret-resolver.ts';

/** What a start is configured from. */
export interface ConfigSource {
  /** The words behind the command. */
  readonly argv: readonly string[];
  readonly env: Environment;
  /** The working folder, absolute: where portico.config.* is looked for and relative paths begin. */
  readonly cwd: string;
  /** Looks at the module's code for those parts that belong to a door, and adds to the problems. */
  readonly check?: ModuleCheck;
}

export type ModuleCheck = (
  code: ConfigCode,
  /** How messages call the module. */
  name: string,
  resolveSecret: SecretResolver,
  problems: string[],
) => void;

/** The whole configuration of a process. */
export interface Config {
  readonly settings: Settings;
  /** Where values come from, the strongest first. */
  readonly sources: readonly PropertySource[];
  readonly code: ConfigCode;
  /** The configuration module, absolute; undefined when there is none. */
  readonly file: string | undefined;
  /** The files that secrets were read from, absolute. */
  readonly secretFiles: ReadonlyMap<OptionKey, string>;
  /** Finds secrets that the module only names. */
  readonly resolveSecret: SecretResolver;
}

/**
 * Reads flags, environment, configuration module and defaults, the earlier ones winning.
 * Rejects with one ConfigError that lists all problems of all of them.
 */
export async function loadConfig({ argv, env, cwd, check }: ConfigSource): Promise<Config> {
  const flags = readFlags(argv);
  const environment = readEnvironment(env, cwd);
  const secrets = secretTexts(env, [flags, environment]);
  const module = await loadModule({ cwd, flag: flags.module, variable: env[moduleOption.env], secrets });

  const readings = [flags, environment, module.reading];
  const settings = merge(readings);
  const problems = readings.flatMap((reading) => reading.problems);
  const resolveSecret = createSecretResolver(env, cwd);
  if (module.file !== undefined) check?.(module.code, module.file.name, resolveSecret, problems);
  if (module.complete) {
    const broken = new Set(readings.flatMap((reading) => [...reading.broken]));
    problems.push(
      ...crossCheck({
        settings,
        broken,
        setsUsers: module.setsUsers,
        users: module.code.users,
        endpoints: module.code.endpoints,
      }),
    );
  }
  if (problems.length > 0) throw new ConfigError(problems);
  const sources = propertySources(flags, env, module.file, module.reading);
  const secretFiles = secretFilesOf(readings, env, cwd);
  return { settings, sources, code: module.code, file: module.file?.path, secretFiles, resolveSecret };
}

/** The file of each secret whose strongest value comes from one. */
function secretFilesOf(
  readings: readonly Reading[],
  env: Environment,
  cwd: string,
): ReadonlyMap<OptionKey, string> {
  const files = new Map<OptionKey, string>();
  for (const key of optionKeys) {
    const variable = `${optionOf(key).env}_FILE`;
    const path = env[variable];
    const strongest = readings.find((reading) => reading.found.has(key))?.found.get(key);
    if (path !== undefined && strongest?.origin === variable) files.set(key, resolve(cwd, path));
  }
  return files;
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
