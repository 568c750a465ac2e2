import { parseJsonBody } from '../http/body/json-body.ts';
import type { Exchange } from '../http/endpoint.ts';
import { HttpProblem } from '../http/problem.ts';
import { readNewUser, userProblem } from '../users/new-user.ts';
import type { NewUser } from '../users/user.ts';

/** Reads the user in a body. Throws HttpProblem. */
export function readUserBody({ body }: Pick<Exchange, 'body'>): NewUser {
  const given = parseJsonBody(body);
  const user = readNewUser(given);
  // contract 7: the reply does not say why; the log does
  if (user === undefined) throw new HttpProblem(400, 'INVALID_USER', userProblem(given));
  return user;
}
