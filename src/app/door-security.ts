import type { Config } from '../config/load.ts';
import type { Door } from '../config/options/door.ts';
import { type OptionKey, optionOf } from '../config/options/options.ts';
import { isLoopback } from '../core/trusted-addresses.ts';
import { socketPathOf } from '../core/unix-address.ts';

/** Whether a door asks for credentials, whatever is asked of it. */
export function asksForCredentials(door: Door, { settings, code }: Config): boolean {
  switch (door) {
    case 'graphql':
    case 'rest':
      return settings['api.required'] === 'all';
    case 'management':
      return (
        settings['management.user'] !== undefined ||
        code.users.length > 0 ||
        settings['management.clientCa'] !== undefined
      );
    case 'webhook':
      return settings['webhook.secret'] !== undefined || settings['webhook.clientCa'] !== undefined;
  }
}

/** The open doors that need no credentials; none when they listen on loopback. */
export function exposedDoors(config: Config): readonly Door[] {
  const { settings } = config;
  const { host } = settings;
  if (isLoopback(host) || host.toLowerCase() === 'localhost') return [];
  // Who may connect to a Unix socket is a matter of its file.
  const isLocal = (door: Door) => socketPathOf(settings[`${door}.port`]) !== undefined;
  return settings.interfaces.filter((door) => !asksForCredentials(door, config) && !isLocal(door));
}

/**
 * Why the console shows no users and no deliveries; undefined where it does. Otherwise it would hand out what other doors
 * give for credentials alone, to every program on this machine.
 */
export function closedInConsole(config: Config): string | undefined {
  const { settings, code } = config;
  if (asksForCredentials('management', config)) return undefined;
  // Signed sources stand beside a receiver that may need no token.
  const signed = Object.keys(Object(code.sources)).length > 0;
  const asks = settings['api.required'] !== 'none' || signed || asksForCredentials('webhook', config);
  if (!asks) return undefined;
  return `The console shows no users and deliveries: other doors ask for credentials and this one does not. Set ${securedBy('management')} to open them`;
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
  return Object.fromEntries(doors.map((door) => [door, `set ${securedBy(door)}`]));
}

/** The options that secure a door, by their names in the environment. */
export function securedBy(door: Door): string {
  return SECURED_BY[door].map((key) => optionOf(key).env).join(' and ');
}
