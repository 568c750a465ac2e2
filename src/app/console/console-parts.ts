import { readFileSync } from 'node:fs';
import type { Config } from '../../config/load.ts';
import type { Door } from '../../config/options/door.ts';
import { socketPathOf } from '../../core/unix-address.ts';
import { parseDatabaseUrl } from '../../database/database-url.ts';
import type { Receiver } from '../../http/client/sender.ts';
import { isExposed } from '../../management/access/exposure.ts';
import type { ConsoleDoor, ConsoleView } from '../../management/console/console-view.ts';
import { History } from '../../observability/history/history.ts';
import { doorAddresses } from '../banner.ts';
import { closedInConsole } from '../door-security.ts';
import { webhookSettings } from '../doors/webhook-door.ts';
import { accessOf, includeList } from '../exposure-rules.ts';
import type { Parts } from '../parts.ts';
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
  const { config, openedDatabase } = parts;
  const { settings } = config;
  const database = openedDatabase();
  return {
    localOnly: socketPathOf(settings['management.port']) !== undefined,
    hosts: [settings.host, ...settings['http.hosts']],
    closed: closedInConsole(config),
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
        receiver: (path) => receiverOf(parts, path),
      }),
  };
}

/** The doors with their addresses, as the start prints them. */
function consoleDoors(parts: Parts): readonly ConsoleDoor[] {
  const urls = [...parts.doors.keys()].map((door) => [door, urlOf(parts, door)] as const);
  const addresses = doorAddresses(
    Object.fromEntries(urls.filter(([, url]) => url !== undefined)),
    parts.config,
  );
  return [...addresses].map(([name, url]) => {
    return { name, url, page: name !== 'webhook' && socketPathOf(url) === undefined };
  });
}

/** The base URL of a door on this machine, or its Unix socket; undefined before it listens. */
function urlOf({ doors, config }: Parts, door: Door): string | undefined {
  const address = doors.get(door)?.app.server.address();
  if (address === null || address === undefined) return undefined;
  if (typeof address === 'string') return `unix:${address}`;
  const scheme = config.settings['tls.cert'] === undefined ? 'http' : 'https';
  const { address: host, port } = address;
  if (host === '0.0.0.0' || host === '::') return `${scheme}://127.0.0.1:${port}`;
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** The webhook door at a path, as this process reaches it; undefined before it listens. */
function receiverOf(parts: Parts, path: string): Receiver | undefined {
  const url = urlOf(parts, 'webhook');
  if (url === undefined) return undefined;
  const socketPath = socketPathOf(url);
  if (socketPath !== undefined) return { url: new URL(`http://localhost${path}`), socketPath };
  const file = parts.config.settings['tls.cert'];
  const receiver = { url: new URL(url + path) };
  // Its names are for others; read anew, because it may change.
  return file === undefined ? receiver : { ...receiver, certificate: readFileSync(file, 'utf8') };
}

/** The address of the console, from those of the doors; undefined when it is not served. */
export function consoleAddress(addresses: ReadonlyMap<Door, string>, config: Config): string | undefined {
  const { settings } = config;
  const exclude = settings['management.exclude'];
  const rules = { include: includeList(config), exclude, access: accessOf(settings) };
  const base = addresses.get('management');
  // No browser opens a Unix socket.
  return base === undefined || socketPathOf(base) !== undefined || !isExposed('console', rules)
    ? undefined
    : `${base.replace(/\/$/, '')}/console`;
}
