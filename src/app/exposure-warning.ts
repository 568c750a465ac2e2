import type { Config } from '../config/load.ts';
import type { Door } from '../config/options/door.ts';
import { type OptionKey, optionOf } from '../config/options/options.ts';
import { socketPathOf } from '../core/unix-address.ts';

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/i;

/** The open doors that need no credentials; none when they listen on loopback. */
export function exposedDoors({ settings, code }: Config): readonly Door[] {
  if (LOOPBACK.test(settings.host)) return [];
  const asks = settings['api.required'] === 'all';
  const secured: Partial<Record<Door, boolean>> = {
    graphql: asks,
    rest: asks,
    management:
      settings['management.user'] !== undefined ||
      code.users.length > 0 ||
      settings['management.clientCa'] !== undefined,
    webhook: settings['webhook.secret'] !== undefined || settings['webhook.clientCa'] !== undefined,
  };
  // Who may connect to a Unix socket is a matter of its file.
  const isLocal = (door: Door) => socketPathOf(settings[`${door}.port`]) !== undefined;
  return settings.interfaces.filter((door) => secured[door] !== true && !isLocal(door));
}

/** The options that secure a door. */
const SECURED_BY: Readonly<Record<Door, readonly OptionKey[]>> = {
  graphql: ['api.required'],
  rest: ['api.required'],
  management: ['management.user', 'management.password'],
  webhook: ['webhook.secret'],
};

/** How each of these doors can be secured, by the names of the environment. */
export function securityAdvice(doors: readonly Door[]): Readonly<Partial<Record<Door, string>>> {
  return Object.fromEntries(
    doors.map((door) => {
      const names = SECURED_BY[door].map((key) => optionOf(key).env);
      return [door, `set ${names.join(' and ')}`];
    }),
  );
}
