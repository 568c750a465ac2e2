import { type Access, accessLevels } from '../../config/options/access.ts';
import { accessRules } from '../access/access.ts';
import { type ExposureRules, exposure, withoutWrites } from '../access/exposure.ts';
import type { ManagementEndpoint } from '../management-endpoint.ts';

/** The endpoints that the console's pages show. */
const SHOWN: readonly string[] = [
  'health',
  'info',
  'metrics',
  'env',
  'loggers',
  'httpexchanges',
  'deliveries',
  'eventloop',
  'threaddump',
  'history',
  'logtail',
  'requests',
  'openapi',
  'docs',
];

/** The access to the console itself. */
export function consoleAccess({ access = {} }: Pick<ExposureRules, 'access'>): Access {
  return accessRules(access)('console', undefined);
}

/**
 * The endpoints that the console has its data from. They need not be exposed by themselves, because the console has a
 * guard of its own; but what is excluded, or bound to less access by name, is so here too.
 */
export function consoleEndpoints(
  endpoints: readonly ManagementEndpoint[],
  { exclude, access = {} }: ExposureRules,
): readonly ManagementEndpoint[] {
  const excluded = exposure(exclude, []);
  const own = consoleAccess({ access });
  const named = accessRules(access);
  return endpoints.flatMap((endpoint) => {
    if (!SHOWN.includes(endpoint.id) || excluded(endpoint.id)) return [];
    const level = lower(own, named(endpoint.id, undefined));
    if (level === 'none') return [];
    if (level === 'unrestricted') return [endpoint];
    return [{ ...endpoint, routes: (scope) => withoutWrites(endpoint.routes(scope)) }];
  });
}

function lower(a: Access, b: Access): Access {
  return accessLevels.indexOf(a) < accessLevels.indexOf(b) ? a : b;
}
