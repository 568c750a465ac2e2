import type { InfoPart } from '../../config/options/management-options.ts';
import { type MaybePromise, whenReady } from '../../core/maybe-promise.ts';
import type { GitInfo } from '../info/git-info.ts';
import { processInfo } from '../info/process.ts';
import { nodeInfo, osInfo } from '../info/runtime.ts';
import type { ManagementEndpoint } from '../management-endpoint.ts';
import type { DoorOptions } from '../options.ts';
import { jsonTextReply } from '../replies.ts';

/** Name and version of the program (contract 2.4). */
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
