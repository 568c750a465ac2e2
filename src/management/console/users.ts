import { HttpProblem } from '../../http/problem.ts';
import type { DatabaseUserStore } from '../../users/database-user-store.ts';
import { readNewUser, userProblem } from '../../users/new-user.ts';
import type { NewUser } from '../../users/user.ts';
import { readUserId } from '../../users/user-id.ts';
import type { Routes } from '../operations.ts';
import { jsonReply, jsonTextReply, NO_CONTENT } from '../replies.ts';
import { findUsers, type UserQuery } from './find-users.ts';

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 200;

/** The users that REST serves, for the console: found, made, changed and removed. */
export function userRoutes(users: DatabaseUserStore, readOnly: boolean): Routes {
  const whenMayWrite = <T>(operation: T): T | undefined => (readOnly ? undefined : operation);
  return {
    '/users': {
      get: async (exchange) => jsonReply(exchange, await findUsers(users, readQuery(exchange.query))),
      post: whenMayWrite(async (exchange, body) => {
        const id = await users.create(readUser(body));
        exchange.log.info({ reqId: exchange.id, user: id }, 'user created on request');
        return jsonReply(exchange, { id });
      }),
    },
    '/users/{id}': {
      get: async (exchange) => {
        const json = await users.readJson(readId(exchange.param));
        if (json === undefined) throw NO_USER;
        return jsonTextReply(exchange, json);
      },
      // This door knows GET, POST and DELETE.
      post: whenMayWrite(async (exchange, body) => {
        const id = readId(exchange.param);
        if (!(await users.update(id, readUser(body)))) throw NO_USER;
        exchange.log.info({ reqId: exchange.id, user: id }, 'user changed on request');
        return NO_CONTENT;
      }),
      delete: whenMayWrite(async (exchange) => {
        const id = readId(exchange.param);
        if (!(await users.remove(id))) throw NO_USER;
        exchange.log.info({ reqId: exchange.id, user: id }, 'user removed on request');
        return NO_CONTENT;
      }),
    },
  };
}

const NO_USER = new HttpProblem(404, 'NO_USER', 'There is no such user');
const WRONG_QUERY = new HttpProblem(
  400,
  'USER_QUERY',
  `sort has to be id or -id, limit from 1 to ${MAX_LIMIT}, cursor an id, and q a text; each at most once`,
);

function readId(param: string): number {
  const id = readUserId(param);
  if (id === undefined) throw NO_USER;
  return id;
}

function readUser(body: unknown): NewUser {
  const user = readNewUser(body);
  if (user === undefined) throw new HttpProblem(400, 'INVALID_USER', userProblem(body));
  return user;
}

function readQuery(query: Readonly<Record<string, unknown>>): UserQuery {
  const { sort = '-id', limit = String(DEFAULT_LIMIT), cursor, q = '' } = query;
  const count = typeof limit === 'string' && /^\d{1,3}$/.test(limit) ? Number(limit) : 0;
  const from = cursor === undefined ? undefined : readUserId(String(cursor));
  const isWrong = typeof q !== 'string' || (cursor !== undefined && from === undefined);
  if (isWrong || (sort !== 'id' && sort !== '-id') || count < 1 || count > MAX_LIMIT) throw WRONG_QUERY;
  return { text: q, descending: sort === '-id', limit: count, cursor: from };
}
