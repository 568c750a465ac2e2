import type { FastifyBaseLogger, onRequestHookHandler } from 'fastify';
import { authenticator, type Verdict } from '../../http/auth/authenticator.ts';
import { HttpProblem } from '../../http/problem.ts';
import { FORBIDDEN, UNAUTHORIZED } from '../management-errors.ts';
import type { DoorOptions } from '../options.ts';

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

  function refusalOf(verdict: Verdict): HttpProblem | undefined {
    if (verdict === undefined) return UNAUTHORIZED;
    if (verdict instanceof HttpProblem) return verdict;
    return role === undefined || verdict.roles.includes(role) ? undefined : FORBIDDEN;
  }

  return (request, _reply, done) => {
    const verdict = authenticate(request.headers.authorization, request.ip);
    if (verdict instanceof Promise) verdict.then((late) => done(refusalOf(late)), done);
    else done(refusalOf(verdict));
  };
}
