import { statSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { quote } from '../../core/quote.ts';
import { moduleOption } from '../options/options.ts';

const defaultNames = ['ts', 'mts', 'js', 'mjs', 'json'].map((ending) => `portico.config.${ending}`);
const loadable = /\.(?:[cm]?[jt]s|json)$/;

/** A configuration module on disk. */
export interface ModuleFile {
  /** Absolute. */
  readonly path: string;
  /** Its name in messages: relative to the working directory if inside. */
  readonly name: string;
}

/** The file to load, if any, or the problem in one line. */
export type ModuleChoice = { readonly file: ModuleFile | undefined } | { readonly problem: string };

/** Finds the configuration module: the one that `flag` or `variable` names, else the one in the working directory. */
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

/** The names of the configuration modules in a folder; more than one is a mistake. */
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
