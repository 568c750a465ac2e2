import type { FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify';
import { whenReady } from '../core/maybe-promise.ts';
import { readJsonBodies } from '../http/body/read-bodies.ts';
import { refuseCrossSiteWrites } from '../http/cross-site.ts';
import { asIs, sendProblem } from '../http/error-format.ts';
import { HttpProblem } from '../http/problem.ts';
import type { DatabaseUserStore } from '../users/database-user-store.ts';
import { readNewUser } from '../users/new-user.ts';
import type { NewUser } from '../users/user.ts';
import { readUserId } from '../users/user-id.ts';
import { directUsers } from './direct.ts';
import { CREATED, data, done, ENDPOINT_NOT_FOUND, JSON_TYPE, USER_NOT_FOUND } from './envelope.ts';
import { listUsers } from './list-users.ts';
import { restErrors } from './rest-errors.ts';
import { unrouted } from './routing.ts';

export interface RestOptions {
  readonly users: DatabaseUserStore;
  /** Largest body in bytes; default 64 KiB. */
  readonly bodyLimit?: number;
}

type WithId = { readonly Params: { readonly id: string } };

const UPDATED = done('User updated successfully');
const DELETED = done('User deleted successfully');

/** The REST door (contract 4.2) as a Fastify plugin. */
export const rest: FastifyPluginCallback<RestOptions> = (app, { users, bodyLimit = 64 * 1024 }, ready) => {
  // contract 4.2: the body is read as JSON
  readJsonBodies(app, { bodyLimit });
  app.addHook('onRequest', refuseCrossSiteWrites);
  app.setNotFoundHandler(notFound);
  app.setErrorHandler((error, request, reply) =>
    request.is404 ? notFound(request, reply) : sendProblem(restErrors, error, request, reply),
  );

  // An empty second segment is none.
  for (const slash of ['', '/']) {
    const direct = slash === '' ? directUsers(users, bodyLimit, app.prefix) : undefined;
    app.get(
      `/users${slash}`,
      { exposeHeadRoute: false, config: { direct: direct?.list } },
      (_request, reply) => whenReady(listUsers(users), (list) => json(reply, list)),
    );
    // The length of a long list is not known before it is sent, so HEAD tells none.
    app.head(`/users${slash}`, (_request, reply) => json(reply, undefined));
    app.post(`/users${slash}`, { config: { direct: direct?.create } }, async (request, reply) => {
      const id = await users.create(newUser(request.body));
      return json(reply.header('location', `${app.prefix}/users/${id}`), CREATED);
    });
    app.get<WithId>(`/users/:id${slash}`, { config: { direct: direct?.read } }, (request, reply) => {
      const id = readUserId(request.params.id);
      // contract 7: an unknown user is an error in the body of a 200
      if (id === undefined) return json(reply, USER_NOT_FOUND);
      return whenReady(users.readJson(id), (user) =>
        json(reply, user === undefined ? USER_NOT_FOUND : data(user)),
      );
    });
    app.put<WithId>(`/update/:id${slash}`, async (request, reply) => {
      if (request.params.id === '') return notFound(request, reply);
      const user = newUser(request.body);
      const id = readUserId(request.params.id);
      const found = id !== undefined && (await users.update(id, user));
      return found ? json(reply, UPDATED) : json(reply.code(404), USER_NOT_FOUND);
    });
    app.delete<WithId>(`/delete/:id${slash}`, async (request, reply) => {
      if (request.params.id === '') return notFound(request, reply);
      const id = readUserId(request.params.id);
      const found = id !== undefined && (await users.remove(id));
      return found ? json(reply, DELETED) : json(reply.code(404), USER_NOT_FOUND);
    });
  }
  ready();

  function notFound(request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const answer = unrouted(request.url.slice(app.prefix.length));
    // contract 7: an unknown first segment
    if (answer.kind === 'unknown') return json(reply.code(404), ENDPOINT_NOT_FOUND);
    // contract 4.2: another method, or no id where one is needed, gets an empty body
    return json(reply.code(request.method === 'OPTIONS' ? 200 : 405).header('allow', answer.allow), '');
  }
};

function newUser(body: unknown): NewUser {
  const user = readNewUser(body);
  if (user === undefined) throw new HttpProblem(400, 'INVALID_USER', 'The body needs a name and an email');
  return user;
}

function json(reply: FastifyReply, payload: string | NodeJS.ReadableStream | undefined): FastifyReply {
  return reply.type(JSON_TYPE).serializer(asIs).send(payload);
}
