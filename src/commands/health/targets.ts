import type { Config } from '../../config/load.ts';
import type { Receiver } from '../../http/client/sender.ts';
import { ownDoor } from '../own-door.ts';

/** What to ask: a URL that answers whether the service is ready, or addresses of doors. */
export type Targets =
  | { readonly readiness: Receiver }
  | { readonly doors: readonly Receiver[] }
  | { readonly problem: string };

/** What tells whether the service of a configuration is ready. */
export function targetsOf(config: Config): Targets {
  const { interfaces } = config.settings;
  if (interfaces.includes('management')) {
    const readiness = ownDoor(config, 'management', '/readyz');
    return 'problem' in readiness ? readiness : { readiness };
  }
  const doors: Receiver[] = [];
  for (const door of interfaces) {
    const found = ownDoor(config, door, '/');
    if ('problem' in found) return found;
    doors.push(found);
  }
  return { doors };
}

/** The URL of `--url`. */
export function givenTarget(given: string): Targets {
  const url = URL.parse(given);
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    return { problem: '--url must be an http or https URL' };
  }
  return { readiness: { url: url.pathname === '/' && url.search === '' ? new URL('/readyz', url) : url } };
}
