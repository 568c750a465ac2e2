import { parseJsonBody } from '../http/body/json-body.ts';
import type { DirectExchange } from '../http/fast-path/fast-exchange.ts';
import type { DirectHandler } from '../http/fast-path/fast-path.ts';
import type { DatabaseUserStore } from '../users/database-user-store.ts';
import { readNewUser } from '../users/new-user.ts';
import type { NewUser } from '../users/user.ts';
import { readUserId } from '../users/user-id.ts';
import { CREATED, data, JSON_TYPE, USER_NOT_FOUND } from './envelope.ts';
import { firstPage, shortList } from './list-users.ts';

/** The door's parts in the direct lane: one user, a short list, and a new user that a program sends. */
export interface DirectUsers {
  readonly read: DirectHandler;
  readonly list: DirectHandler;
  readonly create: DirectHandler;
}

/** `prefix` stands before the paths that clients see. */
export function directUsers(users: DatabaseUserStore, bodyLimit: number, prefix: string): DirectUsers {
  return {
    read(exchange) {
      const id = readUserId(exchange.param);
      if (id === undefined) return false;
      exchange.answer(users.readJson(id), (user) =>
        exchange.send(200, JSON_TYPE, user === undefined ? USER_NOT_FOUND : data(user)),
      );
      return true;
    },
    list(exchange) {
      exchange.answer(firstPage(users), (first) => {
        const list = shortList(first);
        if (list === undefined) exchange.handOver();
        else exchange.send(200, JSON_TYPE, list);
      });
      return true;
    },
    create(exchange) {
      // Only browsers send it; the framework's hook judges.
      const { body, headers } = exchange;
      if (headers['sec-fetch-site'] !== undefined || body.length > bodyLimit) return false;
      const user = readUser(body);
      if (user === undefined) return false;
      exchange.answer(users.create(user), (id) => sendCreated(exchange, `${prefix}/users/${id}`));
      return true;
    },
  };
}

function sendCreated(exchange: DirectExchange, location: string): void {
  exchange.send(200, JSON_TYPE, CREATED, { location });
}

/** Undefined for a body that is refused. */
function readUser(body: Buffer): NewUser | undefined {
  try {
    return readNewUser(parseJsonBody(body));
  } catch {
    return undefined;
  }
}
