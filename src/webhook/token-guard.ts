import type { onRequestHookHandler } from 'fastify';
import { HttpProblem } from '../http/problem.ts';
import { secretMatcher } from '../http/secret-equal.ts';

/**
 * Refuses a request whose x-webhook-token is none of the secrets (contract 4.4 and 5), before its body is read.
 * While there are none the door is not secured and every request passes. `secrets` is asked at each request, so
 * that they can change; what is made of them is kept as long as it gives the same list.
 */
export function tokenGuard(secrets: () => readonly string[]): onRequestHookHandler {
  let known = secrets();
  let matches = secretMatcher(known);
  return (request, reply, done) => {
    const now = secrets();
    if (now !== known) {
      matches = secretMatcher(now);
      known = now;
    }
    if (known.length === 0) return done();
    const token = request.headers['x-webhook-token'];
    // Node reads header bytes as Latin-1; senders write a secret beyond ASCII in UTF-8 as a rule.
    if (typeof token === 'string' && (matches(token) || matches(Buffer.from(token, 'latin1').toString()))) {
      return done();
    }
    // The unread body would otherwise be taken for the next request.
    reply.header('connection', 'close');
    done(new HttpProblem(401, 'WRONG_TOKEN', 'Unauthorized'));
  };
}
