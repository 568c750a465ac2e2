import { parseJsonBody } from '../http/body/json-body.ts';
import type { Exchange } from '../http/endpoint.ts';
import { HttpProblem } from '../http/problem.ts';
import { readNewUser, userProblem, userProblems } from '../users/new-user.ts';
import type { NewUser } from '../users/user.ts';

/** Whether a body is a JSON merge patch (RFC 7396). */
export function isMergePatch({ contentType }: Pick<Exchange, 'contentType'>): boolean {
  const [type = ''] = (contentType ?? '').split(';', 1);
  return type.trim().toLowerCase() === 'application/merge-patch+json';
}

/** Reads the fields of a user that a merge patch has. Throws HttpProblem: no field can be removed. */
export function readUserPatch({ body }: Pick<Exchange, 'body'>): Partial<NewUser> {
  const given = parseJsonBody(body);
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw invalid(given);
  }
  const { name, email } = given as { readonly name?: unknown; readonly email?: unknown };
  const whole = { name: 'n', email: 'e@x', ...given };
  if (readNewUser(whole) === undefined) throw invalid(whole);
  return {
    ...(name === undefined ? {} : { name: String(name) }),
    ...(email === undefined ? {} : { email: String(email) }),
  };
}

/** Reads the user in a body. Throws HttpProblem. */
export function readUserBody({ body }: Pick<Exchange, 'body'>): NewUser {
  const given = parseJsonBody(body);
  const user = readNewUser(given);
  if (user === undefined) throw invalid(given);
  return user;
}

// contract 7: the reply does not say why; the log and problem details do
function invalid(given: unknown): HttpProblem {
  return new HttpProblem(400, 'INVALID_USER', userProblem(given), { reasons: userProblems(given) });
}
