import type { ConfigCode } from '../schema/code.ts';
import { readModuleCode } from '../schema/module-code.ts';
import { type Reading, startReading } from '../sources/reading.ts';
import { importModule } from './import-module.ts';
import { findModule, type ModuleFile } from './module-file.ts';
import { readModuleSettings } from './module-settings.ts';

/** Where to look for the configuration module. */
export interface ModuleSearch {
  readonly cwd: string;
  /** The values of `--config` and CONFIG. */
  readonly flag: string | undefined;
  readonly variable: string | undefined;
  /** Secrets to redact. */
  readonly secrets: readonly string[];
}

/** The content of the configuration module, if there is one. */
export interface LoadedModule {
  readonly file: ModuleFile | undefined;
  readonly reading: Reading;
  readonly code: ConfigCode;
  /** Whether it sets management.users, valid or not. */
  readonly setsUsers: boolean;
  /** False when the module failed to load: then its settings are unknown. */
  readonly complete: boolean;
}

const none: LoadedModule = {
  file: undefined,
  reading: startReading(),
  code: readModuleCode(new Map(), '', []),
  setsUsers: false,
  complete: true,
};

/** Finds, loads and reads the configuration module. */
export async function loadModule({ cwd, flag, variable, secrets }: ModuleSearch): Promise<LoadedModule> {
  const choice = findModule(cwd, flag, variable);
  if ('problem' in choice) return unusable(undefined, choice.problem);
  const file = choice.file;
  if (file === undefined) return none;
  try {
    const imported = await importModule(file);
    return 'problem' in imported ? unusable(file, imported.problem) : readModule(imported.exported, file);
  } catch (error) {
    // Imported on failure only, to keep the start fast.
    const { describeLoadFailure } = await import('./load-failure.ts');
    return unusable(file, await describeLoadFailure(error, { file, cwd, secrets }));
  }
}

function unusable(file: ModuleFile | undefined, problem: string): LoadedModule {
  return { ...none, file, reading: { ...startReading(), problems: [problem] }, complete: false };
}

function readModule(exported: Readonly<Record<string, unknown>>, file: ModuleFile): LoadedModule {
  const { code: given, ...reading } = readModuleSettings(exported, file.name);
  const problems = [...reading.problems];
  const code = readModuleCode(given, file.name, problems);
  return {
    file,
    reading: { ...reading, problems },
    code,
    setsUsers: given.has('management.users'),
    complete: true,
  };
}
