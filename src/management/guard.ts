import { HttpProblem } from '@portico/transport';
import type { FastifyBaseLogger, FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify';
import { authenticator, type BasicUser } from '../access/basic.ts';
import { comparableEndpointId } from '../config/options/endpoint-id.ts';

import { FORBIDDEN } from './management-errors.ts';
import { accessRules } from './masking.ts';
import type { ManagementEndpoint, Routes } from './operations.ts';
import type { DoorOptions } from './options.ts';

type Principal = Pick<BasicUser, 'roles'> & { readonly name: string };

type Verdict = Awaited<ReturnType<ReturnType<typeof authenticator>>>;

const PRINCIPALS = new WeakMap<FastifyRequest, Principal>();

/** The user of a request that has passed the guard; undefined if the door is not secured. */
export function principalOf(request: FastifyRequest): Principal | undefined {
  return PRINCIPALS.get(request);
}

const UNAUTHORIZED = new HttpProblem(401, 'UNAUTHORIZED', 'This needs a user name and a password', {
  headers: { 'www-authenticate': 'Basic realm="portico", charset="UTF-8"' },
});

/**
 * The hook that admits only the configured users (CONTRACT.md#authentication): 401 without valid credentials,
 * 403 without the role. Undefined if no user is configured: then the door is not secured. It belongs to the
 * scope of the base path, so that the router, and not a second parser, decides which URLs it guards.
 */
export function guard(
  { users, role, maxFailedLogins }: Pick<DoorOptions, 'users' | 'role' | 'maxFailedLogins'>,
  log: FastifyBaseLogger,
): onRequestHookHandler | undefined {
  if (users.length === 0) return undefined;
  const authenticate = authenticator(users, {
    maxFailures: maxFailedLogins,
    onLimit: (address) => log.warn({ address }, 'too many failed log-ins to the management door'),
  });

  function refusalOf(request: FastifyRequest, verdict: Verdict): HttpProblem | undefined {
    if (verdict === undefined) return UNAUTHORIZED;
    if (verdict instanceof HttpProblem) return verdict;
    PRINCIPALS.set(request, verdict);
    return role === undefined || verdict.roles.includes(role) ? undefined : FORBIDDEN;
  }

  return (request, _reply, done) => {
    const verdict = authenticate(request.headers.authorization, request.ip);
    if (verdict instanceof Promise) verdict.then((late) => done(refusalOf(request, late)), done);
    else done(refusalOf(request, verdict));
  };
}

/** An exposed endpoint with the routes that its access permits. */
export interface Exposed extends Pick<ManagementEndpoint, 'id' | 'about'> {
  readonly routes: Routes;
}

export type ExposureRules = Pick<DoorOptions, 'include' | 'exclude' | 'access'>;

/** Whether an endpoint is exposed that has no access level of its own. */
export function isExposed(id: string, { include, exclude, access = {} }: ExposureRules): boolean {
  return exposure(include, exclude)(id) && accessRules(access)(id, undefined) !== 'none';
}

/** The exposed endpoints of a scope whose access permits at least one operation, in order. */
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

/** Whether an endpoint is included by id or `*`, and not excluded (CONTRACT.md#management-endpoints). */
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
