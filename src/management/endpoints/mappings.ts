import type { ListedRoute } from '../../http/route-list.ts';
import type { ManagementEndpoint } from '../management-endpoint.ts';
import { jsonReply } from '../replies.ts';

/** Lists the routes of a door, by the door's name. */
export type Mappings = ReadonlyMap<string, () => readonly ListedRoute[]>;

/** The mappings endpoint: every path of every door, in the shape that Actuator's clients draw. */
export function mappingsEndpoint(application: string, mappings: Mappings): ManagementEndpoint {
  function describe() {
    const doors = Array.from(mappings, ([door, routes]) => [
      door,
      routes().map((route) => describeRoute(door, route)),
    ]);
    const all = { dispatcherServlets: Object.fromEntries(doors), servletFilters: [], servlets: [] };
    return { contexts: { [application]: { mappings: all } } };
  }

  return {
    id: 'mappings',
    about: 'Every path that each door serves.',
    routes: () => ({ '/mappings': { get: (exchange) => jsonReply(exchange, describe()) } }),
  };
}

function describeRoute(door: string, { path, methods }: ListedRoute) {
  return {
    handler: door,
    predicate: `{${methods.join(', ')} [${path}]}`,
    details: {
      handlerMethod: { className: door, name: path, descriptor: '' },
      requestMappingConditions: {
        consumes: [],
        headers: [],
        methods,
        params: [],
        patterns: [path],
        produces: [],
      },
    },
  };
}
