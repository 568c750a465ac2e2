import { readFileSync } from 'node:fs';
import type { Config } from '../../config/load.ts';
import { socketPathOf } from '../../core/unix-address.ts';
import type { Receiver } from '../../http/client/sender.ts';
import { misuse } from './misuse.ts';
import type { SendAs } from './sender-of.ts';

/** The receiver: the given one, or that of the webhook door of the configuration. Throws UsageError. */
export function receiverOf(
  given: string | undefined,
  { settings }: Config,
  { path, ownPath }: SendAs,
): Receiver {
  if (given !== undefined) {
    const url = URL.parse(given);
    if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
      throw misuse('--url must be an http or https URL');
    }
    if (url.pathname === '/' && url.search === '') url.pathname = path;
    return { url };
  }
  if (!ownPath) {
    throw misuse('/webhook itself takes a token, no signature; say --source or --url to choose a receiver');
  }
  const port = settings['webhook.port'];
  const socketPath = socketPathOf(port);
  if (socketPath !== undefined) return { url: new URL(`http://localhost${path}`), socketPath };
  if (port === 0) throw misuse('the port of the webhook door is 0, a free one; say --url for where it is');
  const place = `${reachable(settings.host)}:${port}${path}`;
  const file = settings['tls.cert'];
  if (file === undefined) return { url: new URL(`http://${place}`) };
  return { url: new URL(`https://${place}`), certificate: readCertificate(file) };
}

function readCertificate(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    throw misuse(`the certificate ${path} of tls.cert cannot be read; say --url for where the door is`);
  }
}

/** A host to connect to; loopback for an address that means all interfaces. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}
