import { type MaybePromise, whenReady } from '../core/maybe-promise.ts';
import { parseJsonBody } from '../http/body/json-body.ts';
import { refuseCrossSite } from '../http/cross-site.ts';
import type { Endpoint, Exchange, Reply } from '../http/endpoint.ts';
import { HttpProblem } from '../http/problem.ts';
import { handlesStrictly, STRICT_APPLIED } from '../http/strict-handling.ts';
import type { DatabaseUserStore } from '../users/database-user-store.ts';
import { readNewUser, userProblem, userProblems } from '../users/new-user.ts';
import type { NewUser } from '../users/user.ts';
import { readUserId } from '../users/user-id.ts';
import { CREATED, data, done, json } from './envelope.ts';
import { listUsers } from './list-users.ts';
import { methodNotAllowed, NO_SUCH_USER } from './rest-errors.ts';

const UPDATED = json(done('User updated successfully'));
const DELETED = json(done('User deleted successfully'));

/**
 * One endpoint per operation of contract 4.2. `bodyLimit` is in bytes; `prefix` stands before the paths that clients see.
 */
export function userEndpoints(users: DatabaseUserStore, bodyLimit: number, prefix: string) {
  const write = { bodyLimit, admit: refuseCrossSite };
  return {
    list: { bodyLimit: 0, handle: () => whenReady(listUsers(users), (list) => json(list)) },
    read: {
      bodyLimit: 0,
      handle({ param }) {
        const id = readUserId(param);
        if (id === undefined) throw NO_SUCH_USER;
        return whenReady(users.readJson(id), (user) => {
          if (user === undefined) throw NO_SUCH_USER;
          return json(data(user));
        });
      },
    },
    create: {
      ...write,
      handle: (exchange) =>
        whenReady(users.create(newUser(exchange)), (id) => {
          const location = `${prefix}/users/${id}`;
          return handlesStrictly(exchange.headers)
            ? json(CREATED, 201, { location, ...STRICT_APPLIED })
            : json(CREATED, 200, { location });
        }),
    },
    update: {
      ...write,
      handle: (exchange) =>
        written(exchange, UPDATED, () => {
          const user = newUser(exchange);
          return (id) => users.update(id, user);
        }),
    },
    remove: {
      ...write,
      handle: (exchange) =>
        written(exchange, DELETED, () => {
          // contract 4.2: no body is asked for; one that comes is JSON like all others
          if (exchange.body.length > 0) parseJsonBody(exchange.body);
          return (id) => users.remove(id);
        }),
    },
  } satisfies Record<string, Endpoint>;
}

/** Reads what to write, then writes it to the user that the path names. */
function written(
  { param }: Exchange,
  success: Reply,
  read: () => (id: number) => MaybePromise<boolean>,
): MaybePromise<Reply> {
  // contract 4.2: no id where one is needed
  if (param === '') throw methodNotAllowed('OPTIONS');
  const write = read();
  const id = readUserId(param);
  if (id === undefined) throw NO_SUCH_USER;
  return whenReady(write(id), (found) => {
    if (!found) throw NO_SUCH_USER;
    return success;
  });
}

function newUser({ body }: Exchange): NewUser {
  const given = parseJsonBody(body);
  const user = readNewUser(given);
  if (user !== undefined) return user;
  // contract 7: the reply does not say why; the log and problem details do
  throw new HttpProblem(400, 'INVALID_USER', userProblem(given), { reasons: userProblems(given) });
}
