import type { FastifyInstance } from 'fastify';
import { comparableEndpointId } from '../../config/options/endpoint-id.ts';
import type { ManagementEndpoint } from '../management-endpoint.ts';
import type { Routes } from '../operations.ts';
import type { DoorOptions } from '../options.ts';
import { accessRules } from './access.ts';

/** An exposed endpoint with the routes that its access leaves. */
export interface Exposed extends Pick<ManagementEndpoint, 'id' | 'about'> {
  readonly routes: Routes;
}

/** Which endpoints are exposed. */
export type ExposureRules = Pick<DoorOptions, 'include' | 'exclude' | 'access'>;

/** Whether an endpoint without an access level of its own is exposed. */
export function isExposed(id: string, { include, exclude, access = {} }: ExposureRules): boolean {
  return exposure(include, exclude)(id) && accessRules(access)(id, undefined) !== 'none';
}

/** The endpoints that are exposed in a scope and whose access leaves an operation, in their order. */
export function exposedEndpoints(
  scope: FastifyInstance,
  endpoints: readonly ManagementEndpoint[],
  { include, exclude, access: rules = {} }: ExposureRules,
): readonly Exposed[] {
  const exposed = exposure(include, exclude);
  const accessOf = accessRules(rules);
  return endpoints
    .filter(({ id }) => exposed(id))
    .flatMap((endpoint) => {
      const access = accessOf(endpoint.id, endpoint.ownAccess);
      if (access === 'none') return [];
      const all = endpoint.routes(scope);
      const routes = access === 'read-only' ? withoutWrites(all) : all;
      return Object.keys(routes).length === 0 ? [] : [{ id: endpoint.id, about: endpoint.about, routes }];
    });
}

/** The routes without their writes. */
export function withoutWrites(routes: Routes): Routes {
  const readable = Object.entries(routes).filter(([, { get }]) => get !== undefined);
  return Object.fromEntries(
    readable.map(([path, operations]) => [path, { ...operations, post: undefined, delete: undefined }]),
  );
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
