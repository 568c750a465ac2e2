import { type Access, accessLevels } from '../../config/options/access.ts';
import { comparableEndpointId } from '../../config/options/endpoint-id.ts';

export type { Access } from '../../config/options/access.ts';

/** How access is configured. */
export interface AccessRules {
  /** For endpoints that `endpoints` does not name; default each endpoint's own. */
  readonly default?: Access | undefined;
  /** By endpoint id; case, `-` and `.` do not count. */
  readonly endpoints?: ReadonlyMap<string, Access> | undefined;
  /** Upper bound for all endpoints; default unrestricted. */
  readonly max?: Access | undefined;
}

/** Gives the access to an endpoint by its id and its own level, which holds unless one is configured. */
export function accessRules(rules: AccessRules): (id: string, own: Access | undefined) => Access {
  const { max = 'unrestricted', endpoints = new Map<string, Access>() } = rules;
  const named = new Map(Array.from(endpoints, ([id, level]) => [comparableEndpointId(id), level]));
  return (id, own = 'unrestricted') => {
    const level = named.get(comparableEndpointId(id)) ?? rules.default ?? own;
    return accessLevels.indexOf(level) <= accessLevels.indexOf(max) ? level : max;
  };
}
