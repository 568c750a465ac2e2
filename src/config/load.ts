import { resolve } from 'node:path';
import { ExpectedError } from '../core/errors.ts';
import { type LoadedModule, loadModule } from './module.ts';
import { moduleOption, optionOf, type SettingKey, type Settings, settingKeys } from './options/options.ts';
import { createSecretResolver, type Environment, type SecretResolver } from './secrets.ts';
import {
  type Found,
  type PropertySource,
  propertySources,
  type Reading,
  readEnvironment,
  readFlags,
  secretTexts,
} from './sources.ts';

/** The inputs of the settings. */
export interface SettingsSource {
  /** The arguments after the command. */
  readonly argv: readonly string[];
  readonly env: Environment;
  /** The working directory, absolute: contains portico.config.* and is the base of relative paths. */
  readonly cwd: string;
}

/** The settings of a process, and what the rest of its configuration is read from. */
interface LoadedSettings {
  readonly settings: Settings;
  /** The settings with an invalid value, which cannot be relied on. */
  readonly broken: ReadonlySet<SettingKey>;
  /** The sources of all values, highest precedence first. */
  readonly sources: readonly PropertySource[];
  readonly module: LoadedModule;
  /**
   * Absolute path of the file that contains `webhook.secret`; undefined if the secret comes from elsewhere.
   */
  readonly secretFile: string | undefined;
  /** Resolves secrets that the module references. */
  readonly resolveSecret: SecretResolver;
  /** One line for each error; those of the command line come first. */
  readonly problems: readonly string[];
  /** The number of errors on the command line. */
  readonly wrongFlags: number;
}

/** Merges flags, environment, configuration module and defaults, in this order of precedence. */
export async function loadSettings({ argv, env, cwd }: SettingsSource): Promise<LoadedSettings> {
  const flags = readFlags(argv);
  const environment = readEnvironment(env, cwd);
  const secrets = secretTexts(env, [flags, environment]);
  const module = await loadModule({ cwd, flag: flags.module, variable: env[moduleOption.env], secrets });
  const readings = [flags, environment, module.reading];
  const fromFile = find(readings, 'webhook.secret')?.origin === 'WEBHOOK_SECRET_FILE';
  return {
    settings: merge(readings),
    broken: new Set(readings.flatMap((reading) => [...reading.broken])),
    sources: propertySources(flags, env, environment, module.file?.name, module.reading),
    module,
    secretFile: fromFile ? resolve(cwd, env.WEBHOOK_SECRET_FILE ?? '') : undefined,
    resolveSecret: createSecretResolver(env, cwd),
    problems: readings.flatMap((reading) => reading.problems),
    wrongFlags: flags.problems.length,
  };
}

function merge(readings: readonly Reading[]): Settings {
  const values = settingKeys.map((key) => {
    const found = find(readings, key);
    return [key, found === undefined ? optionOf(key).default : found.value];
  });
  // Each value was parsed by its own option.
  return Object.fromEntries(values) as Settings;
}

/** The value from the first source that sets an option. */
function find(readings: readonly Reading[], key: SettingKey): Found | undefined {
  return readings.find(({ found }) => found.has(key))?.found.get(key);
}

/** The configuration is invalid; the start ends with this message and exit code 2. */
export class ConfigError extends ExpectedError {
  override readonly name = 'ConfigError';
  readonly code = 'CONFIG_INVALID';
  /** All problems, one line each, without secrets. */
  readonly problems: readonly string[];

  /** `what` is invalid: the configuration, unless only the command line has problems. */
  constructor(problems: readonly string[], options?: ErrorOptions, what = 'configuration') {
    super(`The ${what} is not valid:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`, options);
    this.problems = problems;
  }
}
