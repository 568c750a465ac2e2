import { type Access, accessLevels } from '../../config/options/access.ts';
import { comparableEndpointId } from '../../config/options/endpoint-id.ts';

export type { Access } from '../../config/options/access.ts';

/** How access is configured. */
export interface AccessRules {
  /** For every endpoint that `endpoints` does not name; each endpoint's own when absent. */
  readonly default?: Access | undefined;
  /** By endpoint id; case, `-` and `.` do not count. */
  readonly endpoints?: ReadonlyMap<string, Access> | undefined;
  /** What no endpoint goes beyond; unrestricted when absent. */
  readonly max?: Access | undefined;
}

/** Tells the access of an endpoint from its id and from its own level, the one for when nobody says. */
export function accessRules(rules: AccessRules): (id: string, own: Access | undefined) => Access {
  const { max = 'unrestricted', endpoints = new Map<string, Access>() } = rules;
  const named = new Map(Array.from(endpoints, ([id, level]) => [comparableEndpointId(id), level]));
  return (id, own = 'unrestricted') => {
    const level = named.get(comparableEndpointId(id)) ?? rules.default ?? own;
    return accessLevels.indexOf(level) <= accessLevels.indexOf(max) ? level : max;
  };
}
