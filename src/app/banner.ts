import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Config } from '../config/load.ts';
import type { Door } from '../config/options/options.ts';
import { socketPathOf } from '../core/addresses.ts';
import { PACKAGE_ROOT } from '../core/package-root.ts';

import { type Paint, plainly } from '../core/text.ts';
import type { GitInfo, GitSource } from '../management/endpoints/info.ts';

type Urls = Readonly<Partial<Record<Door, string>>>;

const TITLES: Readonly<Record<Door, string>> = {
  graphql: 'GraphQL',
  rest: 'REST',
  management: 'Management',
  webhook: 'Webhook',
};

/** The full address of every open door. */
export function doorAddresses(urls: Urls, { settings }: Config): ReadonlyMap<Door, string> {
  const paths: Readonly<Record<Door, string>> = {
    graphql: settings['graphql.path'],
    rest: '/users',
    management: settings['management.basePath'],
    webhook: '/webhook',
  };
  const doors = Object.entries(urls) as [Door, string][];
  // curl would read a path after a socket's path as part of it.
  return new Map(doors.map(([door, url]) => [door, isSocket(url) ? url : url + paths[door]]));
}

/** A command that shows the service at work, for the first door that answers without credentials. */
export function commandToTry(addresses: ReadonlyMap<Door, string>): string {
  const overTcp = [...addresses].filter(([, address]) => !isSocket(address));
  const { rest, graphql, webhook, management } = Object.fromEntries(overTcp) as Urls;
  if (rest !== undefined) return `curl ${rest}`;
  if (graphql !== undefined) return `curl '${graphql}?query=%7Bhello%7D'`;
  if (management !== undefined) return `curl ${new URL('/livez', management)}`;
  if (webhook !== undefined) return `curl -d '{"event":"new_commit","data":{}}' ${webhook}`;
  const [[door, address] = ['rest', '']] = addresses;
  return `curl --unix-socket ${socketPathOf(address)} http://localhost${SOCKET_PATHS[door as Door]}`;
}

function isSocket(address: string): boolean {
  return socketPathOf(address) !== undefined;
}

/** For each door, a path that answers without credentials. */
const SOCKET_PATHS: Readonly<Record<Door, string>> = {
  graphql: '/',
  rest: '/users',
  management: '/livez',
  webhook: '/',
};

/** Appearance of the banner. */
interface BannerLook {
  readonly paint?: Paint;
  /** The address of this machine for other machines, shown if the doors listen on all interfaces. */
  readonly network?: string | undefined;
  /** The address of the console, if a door serves it. */
  readonly console?: string | undefined;
  /** What the console hides, and how to show it. */
  readonly closed?: string | undefined;
}

/** The text that the start prints once all doors listen. `startedIn` is in milliseconds. */
export function banner(
  version: string,
  startedIn: number,
  listening: ReadonlyMap<Door, string>,
  { paint = plainly, network, console, closed }: BannerLook = {},
): string {
  const addresses = new Map([...listening].map(([door, address]) => [door, openable(address)]));
  const isOpenToAll = [...listening].some(([door, address]) => addresses.get(door) !== address);
  const lines = [...addresses].map(
    ([door, address]) => `  ${TITLES[door].padEnd(11)}${paint('cyan', address)}`,
  );
  if (console !== undefined) lines.push(`  ${'Console'.padEnd(11)}${paint('cyan', openable(console))}`);
  if (isOpenToAll && network !== undefined)
    lines.push(`  ${'Network'.padEnd(11)}the same ports at ${network}`);
  if (console !== undefined && closed !== undefined) lines.push('', `  ${closed}`);
  return [
    `${paint('bold', `Portico ${version} is ready`)} (${Math.round(startedIn)} ms)`,
    '',
    ...lines,
    '',
    `  Try:       ${commandToTry(addresses)}`,
    '  Stop:      Ctrl+C',
    '',
  ].join('\n');
}

/** An address that a browser can open: it cannot connect to "all interfaces". */
function openable(address: string): string {
  return address.replace(/^(https?:\/\/)(?:0\.0\.0\.0|\[::\])(?=:)/, '$1localhost');
}

/** The first external IPv4 address of this machine; undefined without a network, or if a sandbox hides it. */
export function networkAddress(): string | undefined {
  try {
    const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
    return addresses.find(({ internal, family }) => !internal && family === 'IPv4')?.address;
  } catch {
    return undefined;
  }
}

/** How this program was built. */
interface BuildInfo {
  /** Time of the build, in ISO 8601. */
  readonly time?: string;
  readonly git?: GitSource | undefined;
}

/** Reads the file that the build has written; in a source checkout `git` asks Git instead. */
export function readBuildInfo(): BuildInfo {
  let text: string;
  try {
    text = readFileSync(new URL('build/build-info.json', PACKAGE_ROOT), 'utf8');
  } catch {
    return { git: () => readGitInfo(fileURLToPath(PACKAGE_ROOT)) };
  }
  return JSON.parse(text) as BuildInfo;
}

const run = promisify(execFile);

/** In milliseconds. */
const TIMEOUT = 5_000;
/** Git sets these while it runs a hook; they would lead to another repository. */
const REDIRECTIONS = ['GIT_DIR', 'GIT_WORK_TREE', 'GIT_COMMON_DIR', 'GIT_OBJECT_DIRECTORY', 'GIT_NAMESPACE'];

/**
 * Asks Git for the commit checked out in a folder; undefined if it is no checkout, or without Git. Never
 * rejects.
 */
export async function readGitInfo(folder: string): Promise<GitInfo | undefined> {
  const [commit, branch] = await Promise.all([
    git(folder, ['-c', 'log.showSignature=false', 'log', '-1', '--format=%H %ct']),
    // Fails when no branch is checked out.
    git(folder, ['symbolic-ref', '--quiet', '--short', 'HEAD']),
  ]);
  const [, id, seconds] = /^([\da-f]{7})[\da-f]* (\d+)$/.exec(commit ?? '') ?? [];
  if (id === undefined) return undefined;
  const time = new Date(Number(seconds) * 1_000).toISOString();
  return { ...(branch === undefined ? {} : { branch }), commit: { id, time } };
}

/** The output of git in a folder that is the root of a checkout; undefined when git fails. */
async function git(folder: string, args: readonly string[]): Promise<string | undefined> {
  const env = {
    ...process.env,
    ...Object.fromEntries(REDIRECTIONS.map((name) => [name, undefined])),
    // A folder inside another checkout does not count.
    GIT_CEILING_DIRECTORIES: dirname(folder),
    GIT_OPTIONAL_LOCKS: '0',
  };
  try {
    const { stdout } = await run('git', args, { cwd: folder, env, timeout: TIMEOUT, windowsHide: true });
    return stdout.trim();
  } catch {
    return undefined;
  }
}
