import type { Config } from '../config/load.ts';
import type { Door } from '../config/options/door.ts';

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

/** What the start prints once all doors listen. `startedIn` is in milliseconds. */
export function banner(version: string, startedIn: number, addresses: ReadonlyMap<Door, string>): string {
  const lines = [...addresses].map(([door, address]) => `  ${TITLES[door].padEnd(11)}${address}`);
  return [
    `Portico ${version} is ready (${Math.round(startedIn)} ms)`,
    '',
    ...lines,
    '',
    `  Try:       ${commandToTry(addresses)}`,
    '  Stop:      Ctrl+C',
    '',
  ].join('\n');
}
