import { readFileSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Build } from '../endpoints/info.ts';

/** Name and version from the package.json nearest to the program; from the working folder's when it has none. */
export function nearestBuild(program = process.argv[1], cwd = process.cwd()): Build {
  const folders = [...folderOf(program), cwd].flatMap(withParents);
  const { name = 'application', version = '0.0.0' } =
    folders.map(readPackage).find((found) => found !== undefined) ?? {};
  return { name, artifact: name, version };
}

interface Package {
  readonly name: string;
  readonly version?: string;
}

/** None for a program that is no file. */
function folderOf(program = ''): readonly string[] {
  try {
    // node_modules/.bin holds links to programs.
    return [dirname(realpathSync(program))];
  } catch {
    return [];
  }
}

function withParents(folder: string): readonly string[] {
  const parent = dirname(folder);
  return parent === folder ? [folder] : [folder, ...withParents(parent)];
}

/** A package.json without a name only sets the module type of the files beside it. */
function readPackage(folder: string): Package | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  } catch {
    return undefined;
  }
  const { name, version } = Object(parsed) as { readonly name?: unknown; readonly version?: unknown };
  if (typeof name !== 'string' || name === '') return undefined;
  return typeof version === 'string' ? { name, version } : { name };
}
