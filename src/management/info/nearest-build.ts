import { readFileSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Build } from '../endpoints/info.ts';

/** Name and version from the package.json nearest to the program; from the working folder's when it has none. */
export function nearestBuild(program = process.argv[1], cwd = process.cwd()): Build {
  const { name = 'application', version = '0.0.0' } =
    packageAbove(folderOf(program)) ?? packageAbove(cwd) ?? {};
  return { name, artifact: name, version };
}

interface Package {
  readonly name: string;
  readonly version?: string;
}

function folderOf(program: string | undefined): string | undefined {
  if (program === undefined) return undefined;
  try {
    // node_modules/.bin holds links to programs.
    return dirname(realpathSync(program));
  } catch {
    return undefined;
  }
}

/** A package.json without a name only sets the module type of the files beside it. */
function packageAbove(folder: string | undefined): Package | undefined {
  for (let at = folder; at !== undefined; at = dirname(at) === at ? undefined : dirname(at)) {
    const found = readPackage(join(at, 'package.json'));
    if (found !== undefined) return found;
  }
  return undefined;
}

function readPackage(file: string): Package | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
  const { name, version } = Object(parsed) as { readonly name?: unknown; readonly version?: unknown };
  if (typeof name !== 'string' || name === '') return undefined;
  return typeof version === 'string' ? { name, version } : { name };
}
