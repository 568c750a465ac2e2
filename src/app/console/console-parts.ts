import type { AddressInfo } from 'node:net';
import type { Config } from '../../config/load.ts';
import type { Door } from '../../config/options/door.ts';
import { parseDatabaseUrl } from '../../database/database-url.ts';
import { isExposed } from '../../management/access/exposure.ts';
import type { ConsoleDoor, ConsoleView } from '../../management/console/console-view.ts';
import { History } from '../../observability/history/history.ts';
import { doorAddresses } from '../banner.ts';
import { webhookSettings } from '../doors/webhook-door.ts';
import { accessOf, includeList } from '../exposure-rules.ts';
import type { OpenDoor, Parts } from '../parts.ts';
import { historySources } from './history-sources.ts';
import { createTestSender } from './test-sender.ts';

const ENGINES = { sqlite: 'SQLite', postgres: 'PostgreSQL' } as const;

/** The history of all doors that are open so far, until the service stops. */
export function openHistory({ metrics, doors, openedDatabase, onStop, config }: Parts): History {
  const traffic = new Map([...doors].map(([door, each]) => [door, each.traffic]));
  const inbox = config.settings.interfaces.includes('webhook') ? openedDatabase()?.inbox : undefined;
  const { sources } = onStop(historySources({ metrics, traffic, inbox }));
  return onStop(new History(sources));
}

/** What the console shows beside the endpoints. `secrets` are those of /webhook, if that door is open. */
export function consoleView(parts: Parts, secrets: (() => readonly string[]) | undefined): ConsoleView {
  const { config, doors, openedDatabase } = parts;
  const { settings } = config;
  const database = openedDatabase();
  return {
    hosts: [settings.host, ...settings['management.consoleHosts']],
    role: settings['management.consoleRole'],
    doors: () => consoleDoors(parts),
    database: database && ENGINES[parseDatabaseUrl(settings['database.url'])?.engine ?? 'sqlite'],
    users: database?.users,
    processes: database?.processes?.bind(database),
    sender:
      secrets &&
      createTestSender({
        sources: webhookSettings(config).sources,
        secrets,
        url: () => urlOf(doors, 'webhook'),
      }),
  };
}

/** The doors with their addresses, as the start prints them. */
function consoleDoors({ config, doors }: Parts): readonly ConsoleDoor[] {
  const urls = [...doors.keys()].map((door) => [door, urlOf(doors, door)] as const);
  const addresses = doorAddresses(Object.fromEntries(urls.filter(([, url]) => url !== undefined)), config);
  return [...addresses].map(([name, url]) => ({ name, url, page: name !== 'webhook' }));
}

/** The base URL of a door on this machine; undefined before it listens. */
function urlOf(doors: ReadonlyMap<Door, OpenDoor>, door: Door): string | undefined {
  const address = doors.get(door)?.app.server.address() as AddressInfo | null | undefined;
  if (address === null || address === undefined) return undefined;
  const { address: host, port } = address;
  if (host === '0.0.0.0' || host === '::') return `http://127.0.0.1:${port}`;
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** The address of the console, from those of the doors; undefined when it is not served. */
export function consoleAddress(addresses: ReadonlyMap<Door, string>, config: Config): string | undefined {
  const { settings } = config;
  const exclude = settings['management.exclude'];
  const rules = { include: includeList(config), exclude, access: accessOf(settings) };
  const base = addresses.get('management');
  return base === undefined || !isExposed('console', rules)
    ? undefined
    : `${base.replace(/\/$/, '')}/console`;
}
