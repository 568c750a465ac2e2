import type { Config } from '../../config/load.ts';
import { reachableHost } from '../reachable-host.ts';
import { misuse } from './misuse.ts';
import type { SendAs } from './sender-of.ts';

/** The URL of the receiver: the given one, or that of the webhook door of the configuration. Throws UsageError. */
export function receiverUrl(given: string | undefined, { settings }: Config, { path, ownPath }: SendAs): URL {
  if (given !== undefined) {
    const url = URL.parse(given);
    if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
      throw misuse('--url must be an http or https URL');
    }
    if (url.pathname === '/' && url.search === '') url.pathname = path;
    return url;
  }
  if (!ownPath) {
    throw misuse('/webhook itself takes a token, no signature; say --source or --url to choose a receiver');
  }
  const port = settings['webhook.port'];
  if (port === 0) throw misuse('the port of the webhook door is 0, a free one; say --url for where it is');
  return new URL(`http://${reachableHost(settings.host)}:${port}${path}`);
}
