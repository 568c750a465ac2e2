import type { FastifyBaseLogger, onRequestHookHandler } from 'fastify';
import { authenticator, type Verdict } from '../../http/auth/authenticator.ts';
import type { BasicUser } from '../../http/auth/basic-auth.ts';
import { HttpProblem } from '../../http/problem.ts';
import { FORBIDDEN, UNAUTHORIZED } from '../management-errors.ts';

interface GuardOptions {
  /** Without any the door is not secured. */
  readonly users: readonly BasicUser[];
  /** The role that a user needs; none when undefined. */
  readonly role: string | undefined;
  /** Failed log-ins of one address within a minute after which it gets 429; default 10, 0 for no limit. */
  readonly maxFailedLogins?: number | undefined;
}

/**
 * The hook that lets only the configured users through (contract 5): 401 without proper credentials, 403 without the
 * role. Undefined when no user is configured: then the door is not secured. It belongs to the scope of the base path,
 * so that the router decides what is under it and not a second reading of the URL.
 */
export function guard(
  { users, role, maxFailedLogins }: GuardOptions,
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
