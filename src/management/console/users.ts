import { HttpProblem, type RequestContext, requestFields } from '@portico/transport';
import { readListParameters, readUserPage } from '../../relations/lists.ts';
import { accepted, type NewUser, readNewUser, readUserId, userProblem } from '../../relations/user.ts';
import type { DatabaseUserStore } from '../../relations/user-stores.ts';
import { jsonReply, jsonTextReply, NO_CONTENT } from '../management-errors.ts';
import type { Routes } from '../operations.ts';

/** Default number of users per page. */
const LIMIT = 50;

/** The console's routes for the users that REST serves: list, create, update and delete. */
export function userRoutes(users: DatabaseUserStore, readOnly: boolean): Routes {
  const whenMayWrite = <T>(operation: T): T | undefined => (readOnly ? undefined : operation);
  return {
    '/users': {
      get: async (ctx) => {
        const { json, next, prev } = await readPage(users, ctx.query);
        const cursors = JSON.stringify({ next: next ?? null, prev: prev ?? null }).slice(1);
        const body = Buffer.concat([Buffer.from('{"items":['), json, Buffer.from(`],${cursors}`)]);
        return jsonTextReply(ctx, body);
      },
      post: whenMayWrite(async (ctx, body) => {
        const id = await accepted(users.create(readUser(body)));
        ctx.log.info({ ...requestFields(ctx), user: id }, 'user created on request');
        return jsonReply(ctx, { id });
      }),
    },
    '/users/{id}': {
      get: async (ctx) => {
        const json = await users.readJson(readId(ctx.param));
        if (json === undefined) throw NO_USER;
        return jsonTextReply(ctx, json);
      },
      // This door has no PATCH.
      post: whenMayWrite(async (ctx, body) => {
        const id = readId(ctx.param);
        if (!(await accepted(users.update(id, readUser(body))))) throw NO_USER;
        ctx.log.info({ ...requestFields(ctx), user: id }, 'user changed on request');
        return NO_CONTENT;
      }),
      delete: whenMayWrite(async (ctx) => {
        const id = readId(ctx.param);
        if (!(await users.remove(id))) throw NO_USER;
        ctx.log.info({ ...requestFields(ctx), user: id }, 'user removed on request');
        return NO_CONTENT;
      }),
    },
  };
}

const NO_USER = new HttpProblem(404, 'USER_NOT_FOUND', 'There is no such user');

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

/** A page in REST's order; newest first unless it is sorted or filtered. */
function readPage(users: DatabaseUserStore, query: RequestContext['query']) {
  const { limit = String(LIMIT), ...others } = query;
  const newestFirst = Object.keys(others).every((name) => name === 'cursor') ? { sort: '-id' } : {};
  const asked = readListParameters({ limit, ...newestFirst, ...others }, false);
  if (asked === undefined) throw new Error('a limit is always given');
  return readUserPage(users.lists, asked);
}
