import type { Config } from '../config/load.ts';
import { readEndpointAccess } from '../config/options/access.ts';
import { consoleEndpoint } from '../config/options/endpoint-id.ts';
import { optionOf, type Settings } from '../config/options/options.ts';
import type { AccessRules } from '../management/access/access.ts';

/** The configured access to endpoints. */
export function accessOf(settings: Settings): AccessRules {
  return {
    default: settings['management.access'],
    endpoints: readEndpointAccess(settings['management.endpointAccess']),
    max: settings['management.maxAccess'],
  };
}

/** The default include list covers the console and the endpoints of the configuration; a configured list is taken as it is. */
export function includeList({ settings, code }: Config): readonly string[] {
  const include = settings['management.include'];
  const isDefault = include === optionOf('management.include').default;
  return isDefault ? [...include, consoleEndpoint, ...code.endpoints.map(({ id }) => id)] : include;
}
