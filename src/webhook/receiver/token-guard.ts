import type { IncomingHttpHeaders } from 'node:http';
import { secretMatcher } from '../../http/auth/secret-equal.ts';
import { HttpProblem } from '../../http/problem.ts';

/** Lets a request with these headers pass, or throws HttpProblem; returns whether a token was needed. */
export type TokenGuard = (headers: IncomingHttpHeaders) => boolean;

/**
 * Refuses requests whose x-webhook-token is none of the secrets (contract 4.4 and 5) with 401, and closes their
 * connection: the unread body would otherwise be taken for the next request. While there are no secrets the door is
 * not secured and every request passes. `secrets` is asked at each request, so that they can change; what is made of
 * them is kept as long as it gives the same list.
 */
export function tokenGuard(secrets: () => readonly string[]): TokenGuard {
  let known = secrets();
  let matches = secretMatcher(known);
  return (headers) => {
    const now = secrets();
    if (now !== known) {
      matches = secretMatcher(now);
      known = now;
    }
    if (known.length === 0) return false;
    const token = headers['x-webhook-token'];
    // Node reads header bytes as Latin-1; senders write a secret beyond ASCII in UTF-8 as a rule.
    if (typeof token === 'string' && (matches(token) || matches(Buffer.from(token, 'latin1').toString())))
      return true;
    throw new HttpProblem(401, 'WRONG_TOKEN', 'Unauthorized', { headers: { connection: 'close' } });
  };
}
