import type { FastifyBaseLogger, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import { authenticator, type Verdict } from '../../http/auth/authenticator.ts';
import type { BasicUser } from '../../http/auth/basic-auth.ts';
import { HttpProblem } from '../../http/problem.ts';
import { FORBIDDEN, refuse, UNAUTHORIZED } from '../management-errors.ts';

export interface GuardOptions {
  /** None: the door is not secured. */
  readonly users: readonly BasicUser[];
  /** The role that a user needs; undefined: any user will do. */
  readonly role: string | undefined;
  /** Failed log-ins of one address within a minute, after which it gets 429; 10 when absent, 0 for no limit. */
  readonly maxFailedLogins?: number | undefined;
}

const CHALLENGE = 'Basic realm="portico", charset="UTF-8"';

/**
 * The hook that lets only the configured users through (contract 5): 401 without proper credentials,
 * 403 without the role; without a required role every user will do. Undefined when no user is
 * configured: then the door is not secured.
 * It belongs to the scope of the base path, so that the router decides what is under it and not a
 * second reading of the URL.
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

  function decide(verdict: Verdict, request: FastifyRequest, reply: FastifyReply, done: () => void): void {
    if (verdict === undefined) {
      refuse(UNAUTHORIZED, request, reply.header('www-authenticate', CHALLENGE));
    } else if (verdict instanceof HttpProblem) {
      refuse(verdict, request, reply);
    } else if (role !== undefined && !verdict.roles.includes(role)) {
      refuse(FORBIDDEN, request, reply);
    } else done();
  }

  return (request, reply, done) => {
    const verdict = authenticate(request.headers.authorization, request.ip);
    if (!(verdict instanceof Promise)) return decide(verdict, request, reply, done);
    verdict
      .then((late) => decide(late, request, reply, done))
      .catch((error: unknown) => refuse(error, request, reply));
  };
}
