import type { InfoPart } from '../../config/options/info-parts.ts';
import type { Endpoint } from '../endpoint.ts';
import type { GitInfo } from '../info/git-info.ts';
import { nodeInfo } from '../info/node.ts';
import { osInfo } from '../info/os.ts';
import { processInfo } from '../info/process.ts';
import { jsonBytes, replyJson } from '../json-reply.ts';
import { addReadRoute } from '../read-route.ts';

/** What runs here (contract 2.4). */
export interface Build {
  readonly version: string;
  readonly artifact: string;
  readonly name: string;
  readonly group?: string | undefined;
  /** When it was built, in ISO 8601. */
  readonly time?: string | undefined;
}

export interface InfoOptions {
  readonly build: Build;
  /** What it was built from. */
  readonly git?: GitInfo | undefined;
  /** The parts to show; build and git when absent. */
  readonly info?: readonly InfoPart[] | undefined;
}

/** The info endpoint. What there is nothing to say of is left out. */
export function infoEndpoint({ build, git, info = ['build', 'git'] }: InfoOptions): Endpoint {
  const { version, artifact, name, group, time } = build;
  const parts: { readonly [P in InfoPart]: () => () => unknown } = {
    build: () => () => ({ artifact, group, name, version, time }),
    git: () => () => git,
    node: () => nodeInfo,
    os: () => osInfo,
    process: processInfo,
  };
  const chosen = Object.entries(parts)
    .filter(([part]) => info.some((name) => name === part))
    .map(([part, make]) => [part, make()] as const);
  const body = () => jsonBytes(Object.fromEntries(chosen.map(([part, describe]) => [part, describe()])));
  // Only a process is not always the same.
  const constant = info.includes('process') ? undefined : body();
  return {
    id: 'info',
    about: 'What runs here, and in which version.',
    links: [{ name: 'info', path: '/info', templated: false }],
    addRoutes(scope) {
      addReadRoute(scope, '/info', (_request, reply) => replyJson(reply, constant ?? body()));
    },
  };
}
