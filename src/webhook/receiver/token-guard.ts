import type { IncomingHttpHeaders } from 'node:http';
import type { onRequestHookHandler } from 'fastify';
import { secretMatcher } from '../../http/auth/secret-equal.ts';
import { HttpProblem } from '../../http/problem.ts';

/** Whether a request with these headers may deliver. */
export type TokenCheck = (headers: IncomingHttpHeaders) => boolean;

/**
 * Checks that x-webhook-token is one of the secrets (contract 4.4 and 5). While there are none the door is not secured
 * and every request passes. `secrets` is asked at each request, so that they can change; what is made of them is kept
 * as long as it gives the same list.
 */
export function tokenCheck(secrets: () => readonly string[]): TokenCheck {
  let known = secrets();
  let matches = secretMatcher(known);
  return (headers) => {
    const now = secrets();
    if (now !== known) {
      matches = secretMatcher(now);
      known = now;
    }
    if (known.length === 0) return true;
    const token = headers['x-webhook-token'];
    if (typeof token !== 'string') return false;
    // Node reads header bytes as Latin-1; senders write a secret beyond ASCII in UTF-8 as a rule.
    return matches(token) || matches(Buffer.from(token, 'latin1').toString());
  };
}

/** Refuses a request that the check does not let pass, before its body is read. */
export function tokenGuard(isAllowed: TokenCheck): onRequestHookHandler {
  return (request, reply, done) => {
    if (isAllowed(request.headers)) return done();
    // The unread body would otherwise be taken for the next request.
    reply.header('connection', 'close');
    done(new HttpProblem(401, 'WRONG_TOKEN', 'Unauthorized'));
  };
}
