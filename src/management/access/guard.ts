import type { FastifyBaseLogger, FastifyRequest, onRequestHookHandler } from 'fastify';
import { authenticator, type Verdict } from '../../http/auth/authenticator.ts';
import type { Principal } from '../../http/auth/basic-auth.ts';
import { HttpProblem } from '../../http/problem.ts';
import { FORBIDDEN, UNAUTHORIZED } from '../management-errors.ts';
import type { DoorOptions } from '../options.ts';

const PRINCIPALS = new WeakMap<FastifyRequest, Principal>();

/** The user of a request that came through the guard; undefined where the door is not secured. */
export function principalOf(request: FastifyRequest): Principal | undefined {
  return PRINCIPALS.get(request);
}

/**
 * The hook that lets only the configured users through (contract 5): 401 without proper credentials, 403 without the
 * role. Undefined when no user is configured: then the door is not secured. It belongs to the scope of the base path,
 * so that the router decides what is under it and not a second reading of the URL.
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
