import { readFileSync, statSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { entriesOf, isRecord, unknownKey } from '../core/json.ts';
import { describeKind, quote } from '../core/text.ts';
import { parseValue } from './options/option.ts';
import {
  type CodeKey,
  codeKeys,
  isSettingKey,
  moduleOption,
  optionOf,
  settingKeys,
} from './options/options.ts';
import { type Reading, startReading, take } from './sources.ts';

/** Where to find the configuration module. */
interface ModuleSearch {
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
  /** The values of its other keys, which the modules of their subjects read. */
  readonly given: ReadonlyMap<CodeKey, unknown>;
  /** False if the module failed to load: then its settings are unknown. */
  readonly complete: boolean;
}

const none: LoadedModule = { file: undefined, reading: startReading(), given: new Map(), complete: true };

/** Finds, loads and reads the configuration module. */
export async function loadModule({ cwd, flag, variable, secrets }: ModuleSearch): Promise<LoadedModule> {
  const choice = findModule(cwd, flag, variable);
  if ('problem' in choice) return unusable(undefined, choice.problem);
  const file = choice.file;
  if (file === undefined) return none;
  try {
    const imported = await importModule(file);
    if ('problem' in imported) return unusable(file, imported.problem);
    const { code: given, ...reading } = readModuleSettings(imported.exported, file.name);
    return { file, reading, given, complete: true };
  } catch (error) {
    // Imported on failure only, to keep the start fast.
    const { describeLoadFailure } = await import('./load-failure.ts');
    return unusable(file, await describeLoadFailure(error, { file, cwd, secrets }));
  }
}

function unusable(file: ModuleFile | undefined, problem: string): LoadedModule {
  return { ...none, file, reading: { ...startReading(), problems: [problem] }, complete: false };
}

/** The default export of a configuration module, or the problem in one line. */
type Imported = { readonly exported: Readonly<Record<string, unknown>> } | { readonly problem: string };

/** The file whose stack frame is below all frames of a loading module. */
export const importer = import.meta.filename;

/** Imports a `.ts` or `.js` module, or parses a `.json` file. Rejects with whatever the module throws. */
export async function importModule(file: ModuleFile): Promise<Imported> {
  return file.path.endsWith('.json') ? readJson(file) : runModule(file);
}

async function runModule(file: ModuleFile): Promise<Imported> {
  const namespace: Readonly<Record<string, unknown>> = await import(pathToFileURL(file.path).href);
  // The default export of a CommonJS module without exports is an empty object.
  const nothing = isRecord(namespace.default) && entriesOf(namespace.default).length === 0;
  if (!Object.hasOwn(namespace, 'default') || (Object.hasOwn(namespace, 'module.exports') && nothing)) {
    return { problem: `${file.name} has no default export; write: export default defineConfig({ ... })` };
  }
  const exported: unknown = await namespace.default;
  if (isRecord(exported)) return { exported };
  const given = describeKind(exported);
  return {
    problem: `the default export of ${file.name} must be an object or a promise of one, not ${given}`,
  };
}

function readJson(file: ModuleFile): Imported {
  const text = readFileSync(file.path, 'utf8').replace(/^\uFEFF/, '');
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    // The message of JSON.parse may quote a secret.
    const fault = jsonFault(text);
    const before = text.slice(0, fault).split('\n');
    const place = `${before.length}:${(before.at(-1)?.length ?? 0) + 1}`;
    const what = fault === text.length ? 'it ends too early' : 'it is not JSON from here on';
    return { problem: `${file.name} cannot be loaded: ${what} (${file.name}:${place})` };
  }
  if (isRecord(parsed)) return { exported: parsed };
  return { problem: `${file.name} must hold an object, not ${describeKind(parsed)}` };
}

const defaultNames = ['ts', 'mts', 'js', 'mjs', 'json'].map((ending) => `portico.config.${ending}`);
const loadable = /\.(?:[cm]?[jt]s|json)$/;

/** A configuration module on disk. */
export interface ModuleFile {
  /** Absolute path. */
  readonly path: string;
  /** The path in messages: relative to the working directory if inside. */
  readonly name: string;
}

/** The file to load, if any, or the problem in one line. */
type ModuleChoice = { readonly file: ModuleFile | undefined } | { readonly problem: string };

/**
 * Finds the configuration module: the one that `flag` or `variable` names, else the one in the working
 * directory.
 */
export function findModule(
  cwd: string,
  flag: string | undefined,
  variable: string | undefined,
): ModuleChoice {
  if (flag !== undefined) return namedModule(cwd, moduleOption.flag, flag);
  if (variable !== undefined) return namedModule(cwd, moduleOption.env, variable);
  const found = moduleFiles(cwd);
  if (found.length > 1) {
    return {
      problem: `${found.join(' and ')} are both here; keep one or name one with ${moduleOption.flag}`,
    };
  }
  return { file: found[0] === undefined ? undefined : { path: resolve(cwd, found[0]), name: found[0] } };
}

/** The names of the configuration modules in a folder; more than one is an error. */
export function moduleFiles(folder: string): readonly string[] {
  return defaultNames.filter((name) => isFile(resolve(folder, name)));
}

function namedModule(cwd: string, place: string, given: string): ModuleChoice {
  if (given.trim() === '') return { problem: `${place} is empty; unset it or name a file` };
  const path = resolve(cwd, given);
  const name = `${place} names ${quote(given)}`;
  if (!isFile(path))
    return { problem: `${name}, and there is no such file (looked for ${displayPath(path, cwd)})` };
  if (!loadable.test(path))
    return { problem: `${name}; a configuration module ends in .ts, .mts, .js, .mjs or .json` };
  return { file: { path, name: displayPath(path, cwd) } };
}

/** A path relative to the working directory if inside, else absolute. */
export function displayPath(path: string, cwd: string): string {
  const inside = relative(cwd, path);
  return inside === '' || /^\.\.(?:[\\/]|$)|^[\\/]|^[A-Za-z]:/.test(inside) ? path : inside;
}

function isFile(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
  } catch {
    return false;
  }
}

const isCodeKey = (key: string): key is CodeKey => codeKeys.has(key as CodeKey);
const allKeys: readonly string[] = [...settingKeys, ...codeKeys.keys()];

/** The content of a configuration module. */
interface ModuleReading extends Reading {
  /** The values of code keys, before validation. */
  readonly code: ReadonlyMap<CodeKey, unknown>;
}

/** Reads the settings of a configuration module. `name` is its name in messages. */
export function readModuleSettings(exported: Readonly<Record<string, unknown>>, name: string): ModuleReading {
  const reading = startReading();
  const code = new Map<CodeKey, unknown>();
  const isJson = name.endsWith('.json');

  const visit = (record: Readonly<Record<string, unknown>>, section: string | undefined): void => {
    for (const [part, value] of entriesOf(record)) {
      const key = section === undefined ? part : `${section}.${part}`;
      const place = { name: `${name}: ${key}`, drop: 'leave it out' };
      // Editors find the schema of the file by it.
      if (key === '$schema' && isJson) continue;
      // Sections are nested, so a key with a dot sets no option.
      if (part.includes('.')) {
        reading.problems.push(
          `${unknownKey(name, key, [])}; write sections as objects: { rest: { port: 8000 } }`,
        );
      } else if (isSettingKey(key)) {
        take(reading, key, place.name, parseValue(optionOf(key), place, value));
      } else if (isSettingKey(`limits.${key}`)) {
        reading.problems.push(`${place.name} is now limits.${key}`);
      } else if (isCodeKey(key) && isJson && codeKeys.get(key)?.json !== true) {
        reading.problems.push(`${place.name} needs a .ts or .js module; .json holds settings only`);
      } else if (isCodeKey(key)) {
        code.set(key, value);
      } else if (!isSection(key)) {
        reading.problems.push(unknownKey(name, key, section === undefined ? topKeys() : allKeys));
      } else if (isRecord(value)) {
        visit(value, key);
      } else {
        // A text in place of a section may be a secret.
        reading.problems.push(`${place.name} must be an object, not ${describeKind(value)}`);
      }
    }
  };
  visit(exported, undefined);
  return { ...reading, code };
}

function topKeys(): readonly string[] {
  return [...new Set(allKeys.map((key) => key.split('.', 1)[0] ?? key))];
}

function isSection(key: string): boolean {
  return allKeys.some((known) => known.startsWith(`${key}.`));
}

/**
 * The offset of the first character that is not JSON; the length of the text if it only ends too early. For
 * texts that JSON.parse refuses, because some of its messages quote the text instead of naming the position.
 */
export function jsonFault(text: string): number {
  let sound = 0;
  let broken = text.length + 1;
  while (broken - sound > 1) {
    const middle = Math.floor((sound + broken) / 2);
    if (canGoOn(text.slice(0, middle))) sound = middle;
    else broken = middle;
  }
  return sound;
}

/** Whether the text is JSON or a prefix of JSON. */
function canGoOn(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    if (error.message.startsWith('Unexpected end of JSON input')) return true;
    if (error.message.startsWith('Unterminated string')) return true;
    const position = /at position (\d+)/.exec(error.message)?.[1];
    return position !== undefined && Number(position) >= text.length;
  }
}
