import type { onRequestHookHandler } from 'fastify';
import { HttpProblem } from '../http/problem.ts';
import { secretMatcher } from '../http/secret-equal.ts';

/**
 * Refuses a request whose x-webhook-token is none of `secrets` (contract 4.4 and 5), before its body is read.
 * With no secrets the door is not secured and every request passes.
 */
export function tokenGuard(secrets: readonly string[]): onRequestHookHandler {
  if (secrets.length === 0) return (_request, _reply, done) => done();
  const matches = secretMatcher(secrets);
  return (request, reply, done) => {
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
