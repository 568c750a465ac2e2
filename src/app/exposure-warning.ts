import type { Config } from '../config/load.ts';
import type { Door } from '../config/options/door.ts';

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/i;

/** The open doors that need no credentials; none when they listen on loopback. */
export function exposedDoors({ settings, code }: Config): readonly Door[] {
  if (LOOPBACK.test(settings.host)) return [];
  const secured: Partial<Record<Door, boolean>> = {
    management: settings['management.user'] !== undefined || code.users.length > 0,
    webhook: settings['webhook.secret'] !== undefined,
  };
  return settings.interfaces.filter((door) => secured[door] !== true);
}
