import type { Config } from '../../config/load.ts';
import { reachableHost } from '../reachable-host.ts';

/** What to ask: a URL that answers whether the service is ready, or addresses of doors. */
export type Targets =
  | { readonly readiness: URL }
  | { readonly doors: readonly URL[] }
  | { readonly problem: string };

/** What tells whether the service of a configuration is ready. */
export function targetsOf({ settings }: Config): Targets {
  const host = reachableHost(settings.host);
  const doors = settings.interfaces.map((door) => ({ door, port: settings[`${door}.port`] }));
  const management = doors.find(({ door }) => door === 'management');
  const asked = management === undefined ? doors : [management];
  const free = asked.find(({ port }) => port === 0);
  if (free !== undefined) {
    return {
      problem: `the port of the ${free.door} door is 0, a free one; say --url for where the service is`,
    };
  }
  const urls = asked.map(({ port }) => new URL(`http://${host}:${port}/readyz`));
  const [readiness] = urls;
  return management !== undefined && readiness !== undefined ? { readiness } : { doors: urls };
}

/** The URL of `--url`; undefined when it is none. */
export function givenTarget(given: string): Targets {
  const url = URL.parse(given);
  if (url === null || url.protocol !== 'http:') return { problem: '--url must be an http URL' };
  return { readiness: url.pathname === '/' && url.search === '' ? new URL('/readyz', url) : url };
}
