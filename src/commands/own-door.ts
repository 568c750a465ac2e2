import { readFileSync } from 'node:fs';
import type { Config } from '../config/load.ts';
import type { Door } from '../config/options/door.ts';
import { socketPathOf } from '../core/unix-address.ts';
import type { Receiver } from '../http/client/sender.ts';

/** Where a path of a door is that this configuration opens on this machine, or why that cannot be said. */
export function ownDoor(
  { settings }: Config,
  door: Door,
  path: string,
): Receiver | { readonly problem: string } {
  const port = settings[`${door}.port`];
  const socketPath = socketPathOf(port);
  if (port === 0) {
    return { problem: `the port of the ${door} door is 0, a free one; say --url for where it is` };
  }
  const file = settings['tls.cert'];
  const place = socketPath === undefined ? `${reachable(settings.host)}:${port}` : 'localhost';
  if (file === undefined || socketPath !== undefined) {
    const url = new URL(`http://${place}${path}`);
    return socketPath === undefined ? { url } : { url, socketPath };
  }
  try {
    return { url: new URL(`https://${place}${path}`), certificate: readFileSync(file, 'utf8') };
  } catch {
    return { problem: `the certificate ${file} of tls.cert cannot be read; say --url for where the door is` };
  }
}

/** A host to connect to; loopback for an address that means all interfaces. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}
