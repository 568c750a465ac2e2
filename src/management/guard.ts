import type { onRequestHookHandler } from 'fastify';
import { type BasicUser, basicAuthenticator } from '../http/basic-auth.ts';
import { FORBIDDEN, refuse, UNAUTHORIZED } from './error-format.ts';

const CHALLENGE = 'Basic realm="portico", charset="UTF-8"';

/**
 * The hook that lets only the configured users through (contract 5): 401 without proper credentials,
 * 403 without the role; without a required role every user will do. Undefined when no user is
 * configured: then the door is not secured.
 * It belongs to the scope of the base path, so that the router decides what is under it and not a
 * second reading of the URL.
 */
export function guard(
  users: readonly BasicUser[],
  role: string | undefined,
): onRequestHookHandler | undefined {
  if (users.length === 0) return undefined;
  const authenticate = basicAuthenticator(users);
  return (request, reply, done) => {
    const principal = authenticate(request.headers.authorization);
    if (principal === undefined) {
      refuse(UNAUTHORIZED, request, reply.header('www-authenticate', CHALLENGE));
    } else if (role !== undefined && !principal.roles.includes(role)) {
      refuse(FORBIDDEN, request, reply);
    } else done();
  };
}
