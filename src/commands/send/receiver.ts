import type { Config } from '../../config/load.ts';
import type { Receiver } from '../../http/client/sender.ts';
import { ownDoor } from '../own-door.ts';
import { misuse } from './misuse.ts';
import type { SendAs } from './sender-of.ts';

/** The receiver: the given one, or that of the webhook door of the configuration. Throws UsageError. */
export function receiverOf(given: string | undefined, config: Config, { path, ownPath }: SendAs): Receiver {
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
  const own = ownDoor(config, 'webhook', path);
  if ('problem' in own) throw misuse(own.problem);
  return own;
}
