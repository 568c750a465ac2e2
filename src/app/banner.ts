import { networkInterfaces } from 'node:os';
import type { Config } from '../config/load.ts';
import type { Door } from '../config/options/door.ts';
import { type Paint, plainly } from '../core/paint.ts';

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
  return new Map(doors.map(([door, url]) => [door, url + paths[door]]));
}

/** One command that shows the service at work, for the first door that answers without credentials. */
export function commandToTry(addresses: ReadonlyMap<Door, string>): string {
  const { rest, graphql, webhook, management } = Object.fromEntries(addresses) as Urls;
  if (rest !== undefined) return `curl ${rest}`;
  if (graphql !== undefined) return `curl '${graphql}?query=%7Bhello%7D'`;
  if (management !== undefined) return `curl ${new URL('/livez', management)}`;
  return `curl -d '{"event":"new_commit","data":{}}' ${webhook}`;
}

/** How a banner looks. */
interface BannerLook {
  readonly paint?: Paint;
  /** The address of this machine for others, shown where the doors listen on all of its interfaces. */
  readonly network?: string | undefined;
}

/** What the start prints once all doors listen. `startedIn` is in milliseconds. */
export function banner(
  version: string,
  startedIn: number,
  listening: ReadonlyMap<Door, string>,
  { paint = plainly, network }: BannerLook = {},
): string {
  const addresses = new Map([...listening].map(([door, address]) => [door, openable(address)]));
  const isOpenToAll = [...listening].some(([door, address]) => addresses.get(door) !== address);
  const lines = [...addresses].map(
    ([door, address]) => `  ${TITLES[door].padEnd(11)}${paint('cyan', address)}`,
  );
  if (isOpenToAll && network !== undefined)
    lines.push(`  ${'Network'.padEnd(11)}the same ports at ${network}`);
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

/** An address that a browser can open: nobody can connect to "all interfaces". */
function openable(address: string): string {
  return address.replace(/^http:\/\/(?:0\.0\.0\.0|\[::\])(?=:)/, 'http://localhost');
}

/** The first address of this machine that others may reach; undefined without a network, and where a sandbox hides it. */
export function networkAddress(): string | undefined {
  try {
    const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
    return addresses.find(({ internal, family }) => !internal && family === 'IPv4')?.address;
  } catch {
    return undefined;
  }
}
