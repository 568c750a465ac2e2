import type { DoorApi } from '../../http/openapi/api.ts';
import { named, text } from '../../http/openapi/schema.ts';
import type { Exposed } from '../access/exposure.ts';
import type { DoorOptions } from '../options.ts';
import { coreApi, probesApi } from './core-api.ts';
import { customApi } from './custom-api.ts';
import { documentsApi } from './documents-api.ts';
import { recentApi } from './recent-api.ts';
import { runtimeApi } from './runtime-api.ts';
import { type EndpointPaths, json, managementSchemas } from './shapes.ts';
import { workApi } from './work-api.ts';

/** What the description needs of the door. */
export interface ManagementApiOptions extends Pick<DoorOptions, 'endpoints' | 'users'> {
  /** Where the endpoints are. */
  readonly prefix: string;
  readonly exposed: readonly Exposed[];
}

/** The management door as OpenAPI describes it: the probes, the index, and every exposed endpoint with its access. */
export function managementApi({ endpoints, users, prefix, exposed }: ManagementApiOptions): DoorApi {
  const known: EndpointPaths = Object.assign(
    {},
    coreApi,
    workApi,
    runtimeApi,
    recentApi,
    documentsApi,
    ...endpoints.map(customApi),
  );
  const described = exposed.flatMap(({ routes }) =>
    Object.entries(routes).flatMap(([route, operations]) => {
      // A path of OpenAPI has no parameter of several segments.
      const path = route.replace('{*', '{');
      const methods = Object.entries(known[path] ?? {}).filter(
        ([method]) => operations[method as 'get' | 'post' | 'delete'] !== undefined,
      );
      return methods.length === 0 ? [] : [[prefix + path, Object.fromEntries(methods)]];
    }),
  );
  const isSecured =
    prefix === '' ? /^\/(?!livez$|readyz$)/ : new RegExp(`^${prefix.replaceAll('.', '\\.')}(?:/|$)`);
  return {
    door: 'management',
    about: 'Health, metrics and the inside of the service.',
    refusal: { type: 'application/json', schema: named('ManagementError') },
    schemas: managementSchemas,
    ...(users.length > 0 && {
      security: {
        schemes: { basic: { type: 'http', scheme: 'basic' } },
        needs: (path) => (isSecured.test(path) ? { basic: [] } : undefined),
        refusals: ['UNAUTHORIZED', 'FORBIDDEN', 'TOO_MANY_ATTEMPTS', 'TOO_MANY_LOGINS'],
      },
    }),
    paths: {
      ...probesApi,
      ...(prefix !== '' && { [prefix]: { get: INDEX } }),
      ...Object.fromEntries(described),
    },
  };
}

const INDEX = {
  id: 'listEndpoints',
  summary: 'Links to every exposed endpoint',
  replies: {
    200: {
      description: 'A page for browsers.',
      content: { ...json(named('Links')), 'text/html; charset=utf-8': text() },
    },
  },
} as const;
