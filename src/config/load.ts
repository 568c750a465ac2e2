import { resolve } from 'node:path';
import { ConfigError } from './config-error.ts';
import { crossCheck } from './cross-checks.ts';
import { loadModule } from './module/load-module.ts';
import { moduleOption, type OptionKey, optionKeys, optionOf, type Settings } from './options/options.ts';
import type { ConfigCode } from './schema/code.ts';
import { secretTexts } from './secret-texts.ts';
import { type Environment, readEnvironment } from './sources/environment.ts';
import { readFlags } from './sources/flags.ts';
import type { PropertySource } from './sources/property-sources.ts';
import { propertySources } from './sources/property-sources.ts';
import type { Found, Reading } from './sources/reading.ts';
import { createSecretResolver, type SecretResolver } from './sources/secret-resolver.ts';

/** The inputs of the configuration. */
export interface ConfigSource {
  /** The arguments after the command. */
  readonly argv: readonly string[];
  readonly env: Environment;
  /** The working directory, absolute: holds portico.config.* and is the base of relative paths. */
  readonly cwd: string;
  /** Validates the parts of the module that a door reads itself; appends to `problems`. */
  readonly check?: ModuleCheck;
}

/** Validates parts of a module. */
export type ModuleCheck = (
  code: ConfigCode,
  /** The module's name in messages. */
  name: string,
  resolveSecret: SecretResolver,
  problems: string[],
  /** The settings; those of `broken` have a value that was refused, and are not to be relied on. */
  options: { readonly settings: Settings; readonly broken: ReadonlySet<OptionKey> },
) => void;

/** The whole configuration of a process. */
export interface Config {
  readonly settings: Settings;
  /** The sources of all values, highest precedence first. */
  readonly sources: readonly PropertySource[];
  readonly code: ConfigCode;
  /** The configuration module, absolute; undefined when there is none. */
  readonly file: string | undefined;
  /** The file that `webhook.secret` is read from, absolute; undefined when it comes from elsewhere. */
  readonly secretFile: string | undefined;
  /** Resolves secrets that the module references. */
  readonly resolveSecret: SecretResolver;
}

/**
 * Merges flags, environment, configuration module and defaults, in this order of precedence.
 * Rejects with one ConfigError that lists the problems of all of them.
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
  const broken = new Set(readings.flatMap((reading) => [...reading.broken]));
  if (module.file !== undefined) {
    check?.(module.code, module.file.name, resolveSecret, problems, { settings, broken });
  }
  if (module.complete) {
    problems.push(...crossCheck({ settings, broken, ...module }));
  }
  if (problems.length > 0) {
    const isCall = problems.length === flags.problems.length;
    throw new ConfigError(problems, undefined, isCall ? 'command line' : undefined);
  }
  const sources = propertySources(flags, env, environment, module.file?.name, module.reading);
  const fromFile = find(readings, 'webhook.secret')?.origin === 'WEBHOOK_SECRET_FILE';
  const secretFile = fromFile ? resolve(cwd, env.WEBHOOK_SECRET_FILE ?? '') : undefined;
  return { settings, sources, code: module.code, file: module.file?.path, secretFile, resolveSecret };
}

function merge(readings: readonly Reading[]): Settings {
  const values = optionKeys.map((key) => {
    const found = find(readings, key);
    return [key, found === undefined ? optionOf(key).default : found.value];
  });
  // Every key has a value that its own option parsed.
  return Object.fromEntries(values) as Settings;
}

/** What the first source that sets an option found. */
function find(readings: readonly Reading[], key: OptionKey): Found | undefined {
  return readings.find(({ found }) => found.has(key))?.found.get(key);
}
