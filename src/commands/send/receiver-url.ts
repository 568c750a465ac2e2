import type { Config } from '../../config/load.ts';
import { UsageError } from '../usage-error.ts';
import type { SendAs } from './sender-of.ts';
import { sendUsage } from './usage.ts';

/** Where a delivery goes: to the given URL, or to the webhook door of the configuration. Throws UsageError. */
export function receiverUrl(given: string | undefined, { settings }: Config, { path, ownPath }: SendAs): URL {
  const misuse = (problem: string) => new UsageError([problem], sendUsage.topic);
  if (given !== undefined) {
    const url = URL.parse(given);
    if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
      throw misuse('--url must be an http or https URL');
    }
    if (url.pathname === '/' && url.search === '') url.pathname = path;
    return url;
  }
  if (!ownPath) {
    throw misuse(
      '/webhook itself takes a token, no signature; say --source or --url for where this is to go',
    );
  }
  const port = settings['webhook.port'];
  if (port === 0) throw misuse('the port of the webhook door is 0, a free one; say --url for where it is');
  return new URL(`http://${reachable(settings.host)}:${port}${path}`);
}

/** An address of this machine for one that means all of them. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}
