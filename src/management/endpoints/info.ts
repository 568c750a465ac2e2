import { readFileSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { InfoPart } from '../../config/options/management.ts';
import { type MaybePromise, whenReady } from '../../core/maybe-promise.ts';
import type { ManagementEndpoint } from '../management-endpoint.ts';
import { jsonTextReply } from '../management-errors.ts';
import type { DoorOptions } from '../options.ts';
import { type GitInfo, nodeInfo, osInfo, processInfo } from './process.ts';

/** Name and version of the program (CONTRACT.md#management-bodies). */
export interface Build {
  readonly version: string;
  readonly artifact: string;
  readonly name: string;
  readonly group?: string | undefined;
  /** When it was built, in ISO 8601. */
  readonly time?: string | undefined;
}

export type InfoOptions = Pick<DoorOptions, 'build' | 'git' | 'info'>;

/** The info endpoint. Parts and members without a value are left out. */
export function infoEndpoint({ build, git, info = ['build', 'git'] }: InfoOptions): ManagementEndpoint {
  const { version, artifact, name, group, time } = build;
  const shows = (part: InfoPart) => info.includes(part);
  const describeProcess = shows('process') ? processInfo() : undefined;
  let foundGit: MaybePromise<GitInfo | undefined> | undefined;
  let constant: string | undefined;

  function findGit(): MaybePromise<GitInfo | undefined> {
    if (!shows('git')) return undefined;
    foundGit ??= typeof git === 'function' ? git() : git;
    return foundGit;
  }

  function bodyWith(commit: GitInfo | undefined): string {
    if (constant !== undefined) return constant;
    const body = JSON.stringify({
      build: shows('build') ? { artifact, group, name, version, time } : undefined,
      git: commit,
      node: shows('node') ? nodeInfo() : undefined,
      os: shows('os') ? osInfo() : undefined,
      process: describeProcess?.(),
    });
    // Only the description of the process changes.
    if (describeProcess === undefined) constant = body;
    return body;
  }

  return {
    id: 'info',
    about: 'Name, version and commit of this service.',
    routes: () => ({
      '/info': {
        get: (exchange) =>
          whenReady(constant === undefined ? findGit() : undefined, (commit) =>
            jsonTextReply(exchange, bodyWith(commit)),
          ),
      },
    }),
  };
}

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
