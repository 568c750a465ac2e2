import { type MaybePromise, whenReady } from '../core/maybe-promise.ts';
import { parseJsonBody } from '../http/body/json-body.ts';
import { refuseCrossSite } from '../http/cross-site.ts';
import type { Endpoint, Exchange, Reply } from '../http/endpoint.ts';
import { preferences } from '../http/prefer.ts';
import { HttpProblem } from '../http/problem.ts';
import type { DatabaseUserStore } from '../users/database-user-store.ts';
import { readNewUser, userProblem } from '../users/new-user.ts';
import type { NewUser } from '../users/user.ts';
import { readUserId } from '../users/user-id.ts';
import { CREATED, data, done, json, USER_NOT_FOUND } from './envelope.ts';
import { listUsers } from './list-users.ts';
import { listPage, totalHeaders } from './lists/list-page.ts';
import { onlyFields, readFields, readListParameters } from './lists/parameters.ts';
import { methodNotAllowed, NO_SUCH_USER } from './rest-errors.ts';

const UPDATED = json(done('User updated successfully'));
const DELETED = json(done('User deleted successfully'));

/**
 * One endpoint per operation of contract 4.2. `bodyLimit` is in bytes; `prefix` stands before the paths that clients see.
 */
export function userEndpoints(users: DatabaseUserStore, bodyLimit: number, prefix: string) {
  const write = { bodyLimit, admit: refuseCrossSite };
  return {
    list: {
      bodyLimit: 0,
      handle(exchange) {
        const prefers = preferences(exchange);
        const asked = readListParameters(exchange.query, prefers.get('handling') === 'lenient');
        const counts = prefers.get('count') === 'exact';
        if (asked !== undefined) return listPage(users.lists, asked, { path: `${prefix}/users`, counts });
        const whole = (headers?: Reply['headers']) =>
          whenReady(listUsers(users), (list) => json(list, 200, headers));
        return counts ? users.lists.count([]).then((total) => whole(totalHeaders(total))) : whole();
      },
    },
    read: {
      bodyLimit: 0,
      handle({ param, query }) {
        const id = readUserId(param);
        // contract 7: an unknown user is an error in the body of a 200
        if (id === undefined) return json(USER_NOT_FOUND);
        const { fields } = query;
        const shown = fields === undefined ? undefined : readFields(String(fields));
        return whenReady(users.readJson(id), (user) =>
          json(
            user === undefined ? USER_NOT_FOUND : data(shown === undefined ? user : onlyFields(user, shown)),
          ),
        );
      },
    },
    create: {
      ...write,
      handle: (exchange) =>
        whenReady(users.create(newUser(exchange)), (id) =>
          json(CREATED, 200, { location: `${prefix}/users/${id}` }),
        ),
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
  // contract 7: the reply does not say why; the log does
  if (user === undefined) throw new HttpProblem(400, 'INVALID_USER', userProblem(given));
  return user;
}
