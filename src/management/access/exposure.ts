import { comparableEndpointId } from '../../config/options/endpoint-id.ts';
import type { ManagementEndpoint } from '../management-endpoint.ts';
import { type Access, type AccessRules, accessRules } from './access.ts';

/** An exposed endpoint, and the access to it. */
export interface Exposed {
  readonly endpoint: ManagementEndpoint;
  readonly access: Exclude<Access, 'none'>;
}

/** Which endpoints are exposed. */
export interface ExposureRules {
  readonly include: readonly string[];
  readonly exclude: readonly string[];
  readonly access?: AccessRules | undefined;
}

/** Whether an endpoint without an access level of its own is exposed. */
export function isExposed(id: string, { include, exclude, access = {} }: ExposureRules): boolean {
  return exposure(include, exclude)(id) && accessRules(access)(id, undefined) !== 'none';
}

/** The endpoints that are exposed and whose access leaves an operation, in their order. */
export function exposedEndpoints(
  endpoints: readonly ManagementEndpoint[],
  { include, exclude, access: rules = {} }: ExposureRules,
): readonly Exposed[] {
  const exposed = exposure(include, exclude);
  const accessOf = accessRules(rules);
  return endpoints
    .filter(({ id }) => exposed(id))
    .flatMap((endpoint) => {
      const access = accessOf(endpoint.id, endpoint.ownAccess);
      const nothingLeft = access === 'none' || (access === 'read-only' && endpoint.writeOnly === true);
      return nothingLeft ? [] : [{ endpoint, access }];
    });
}

/** Whether an endpoint is exposed: named by `include`, or `*` there, and not by `exclude` (contract 4.3). */
export function exposure(include: readonly string[], exclude: readonly string[]): (id: string) => boolean {
  const included = matcher(include);
  const excluded = matcher(exclude);
  return (id) => included(id) && !excluded(id);
}

function matcher(names: readonly string[]): (id: string) => boolean {
  if (names.includes('*')) return () => true;
  const comparable = new Set(names.map(comparableEndpointId));
  return (id) => comparable.has(comparableEndpointId(id));
}
