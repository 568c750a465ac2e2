import { type Access, accessLevels } from '../../config/options/access.ts';
import { HttpProblem } from '../../http/problem.ts';
import { accessRules } from '../access/access.ts';
import { type ExposureRules, exposure, withoutWrites } from '../access/exposure.ts';
import type { ManagementEndpoint } from '../management-endpoint.ts';
import type { Operations, Routes } from '../operations.ts';
import type { ConsoleView } from './console-view.ts';

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

/** The data of other doors, which the console does not give away where those ask for credentials. */
const OTHERS: readonly string[] = ['users', 'deliveries', 'test-deliveries'];

/** Whether an endpoint of the console is closed, where some are. */
export function isClosed(id: string, { closed }: Pick<ConsoleView, 'closed'>): boolean {
  return closed !== undefined && OTHERS.includes(id);
}

/** Routes that only say why they are closed. */
export function closedRoutes(routes: Routes, why: string): Routes {
  const refuse = () => {
    throw new HttpProblem(403, 'CONSOLE_REFUSED', why);
  };
  const closed = ({ get, post, delete: remove }: Operations): Operations => ({
    get: get && refuse,
    post: post && refuse,
    delete: remove && refuse,
  });
  return Object.fromEntries(Object.entries(routes).map(([path, operations]) => [path, closed(operations)]));
}

function lower(a: Access, b: Access): Access {
  return accessLevels.indexOf(a) < accessLevels.indexOf(b) ? a : b;
}
