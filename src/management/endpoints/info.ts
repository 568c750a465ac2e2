import { readFileSync, realpathSync } from 'node:fs';
import { arch, availableParallelism, release, type, userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { getHeapStatistics } from 'node:v8';
import type { InfoPart } from '../../config/options/management.ts';
import { type MaybePromise, whenReady } from '../../core/scheduler.ts';
import { jsonTextReply } from '../management-errors.ts';
import type { ManagementEndpoint } from '../operations.ts';
import type { DoorOptions } from '../options.ts';
import { formatDuration } from './recent.ts';

/** Name and version of the program (CONTRACT.md#management-bodies). */
export interface Build {
  readonly version: string;
  readonly artifact: string;
  readonly name: string;
  readonly group?: string | undefined;
  /** Time of the build, in ISO 8601. */
  readonly time?: string | undefined;
}

type InfoOptions = Pick<DoorOptions, 'build' | 'git' | 'info'>;

/** The info endpoint. Parts and members without a value are omitted. */
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
        get: (ctx) =>
          whenReady(constant === undefined ? findGit() : undefined, (commit) =>
            jsonTextReply(ctx, bodyWith(commit)),
          ),
      },
    }),
  };
}

/** Name and version from the package.json nearest to the program, else to the working folder. */
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

/** Empty for a program that is no file. */
function folderOf(program = ''): readonly string[] {
  try {
    // node_modules/.bin contains links to programs.
    return [dirname(realpathSync(program))];
  } catch {
    return [];
  }
}

function withParents(folder: string): readonly string[] {
  const parent = dirname(folder);
  return parent === folder ? [folder] : [folder, ...withParents(parent)];
}

/** Skips a package.json without a name: it only sets the module type of the files beside it. */
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

/** The commit from which a program was built, as Actuator shows it. */
export interface GitInfo {
  /** Absent if no branch is checked out. */
  readonly branch?: string;
  readonly commit: {
    /** The first seven digits. */
    readonly id: string;
    /** Time of the commit, in ISO 8601. */
    readonly time?: string;
  };
}

/** The commit, or a function that finds it; undefined if there is none. */
export type GitSource = GitInfo | (() => MaybePromise<GitInfo | undefined>);

/** Java's value for an unknown size. */
const UNDEFINED = -1;

/** Returns a function that describes this process in Actuator's format, with V8's heap. */
function processInfo() {
  const { timeZone, locale } = Intl.DateTimeFormat().resolvedOptions();
  const always = {
    pid: process.pid,
    owner: owner(),
    startTime: new Date(performance.timeOrigin).toISOString(),
    timezone: timeZone,
    locale,
    workingDirectory: process.cwd(),
  };
  return () => ({
    ...always,
    parentPid: process.ppid,
    currentTime: new Date().toISOString(),
    uptime: formatDuration(performance.now()),
    cpus: availableParallelism(),
    memory: memory(),
  });
}

function owner(): string | undefined {
  try {
    return userInfo().username;
  } catch {
    // In a container the user often has no name.
    return process.getuid?.()?.toString();
  }
}

function memory() {
  const { rss, external } = process.memoryUsage();
  const { used_heap_size, total_heap_size, heap_size_limit, malloced_memory } = getHeapStatistics();
  const beside = external + malloced_memory;
  return {
    heap: { init: UNDEFINED, used: used_heap_size, committed: total_heap_size, max: heap_size_limit },
    nonHeap: {
      init: UNDEFINED,
      used: beside,
      committed: Math.max(beside, rss - total_heap_size),
      max: UNDEFINED,
    },
  };
}

function osInfo() {
  return { name: type(), version: release(), arch: arch() };
}

/** The runtime, in the format of Actuator's `java`. */
function nodeInfo() {
  const { v8, uv, openssl, modules } = process.versions;
  const { name, lts } = process.release;
  return {
    version: process.versions.node,
    lts,
    v8,
    uv,
    openssl,
    modules,
    runtime: { name, path: process.execPath },
  };
}
