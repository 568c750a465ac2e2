import { addEndpoint, addFields, BodyBudget, readRawBodies, sendProblem } from '@portico/transport';
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { addPreflights, type CorsOptions, corsPolicy } from '../access/cors.ts';
import { pluginPolicy } from '../access/guarded.ts';
import type { ApiOptions } from '../access/open-policy.ts';
import type { AccessPolicy } from '../access/policy.ts';
import { defaultsOf } from '../config/options/options.ts';
import type { RelationFeed, UserEventFeed } from '../relations/events.ts';
import { hasRules, type Relation, USERS } from '../relations/relation.ts';
import type { RowStore, RowStores } from '../relations/rows/rows.ts';
import type { DatabaseUserStore } from '../relations/user-stores.ts';
import { SENDING_PATHS } from '../sending/config.ts';
import { importPlaces } from './bulk.ts';
import { changeStreams, userChanges } from './change-feed.ts';
import {
  allowedOf,
  BATCH,
  CHANGES_PATH,
  JSON_TYPE,
  methodNotAllowed,
  NO_ROUTE,
  restErrorsWith,
} from './messages.ts';
import type { ServedSending } from './sending.ts';
import { userEndpoints } from './users.ts';

/** The options of the REST door. */
export interface RestOptions {
  readonly users: DatabaseUserStore;
  /** Largest body in bytes; default 64 KiB. */
  readonly maxBodyBytes?: number;
  /** Whether updates and deletions need If-Match; default false. */
  readonly requireIfMatch?: boolean;
  /** How long the outcome of a create with an Idempotency-Key is kept, in hours; default 24. */
  readonly idempotencyHours?: number;
  /** Largest import in bytes; default 4 GiB. */
  readonly maxImportBytes?: number;
  /**
   * Whether users have the paths and replies of the contract, or those of a relation: then `users` needs rows. Default:
   * contract.
   */
  readonly userPaths?: 'contract' | 'standard';
  /** The rows of declared relations; default none. */
  readonly relations?: RowStores | undefined;
  /** The changes of users; without it GET /users offers no event stream. */
  readonly feed?: UserEventFeed | undefined;
  /** The changes of relations; without it they offer no event stream. */
  readonly relationFeed?: RelationFeed | undefined;
  /** What sends events to the endpoints of customers; without it the door has no paths for them. */
  readonly sending?: ServedSending | undefined;
  /** Maximum concurrent event streams; default 1,000. */
  readonly maxStreams?: number;
  /** Access policy or its options: which operations need credentials; default none. */
  readonly api?: ApiOptions | AccessPolicy | undefined;
  /** Pages of other origins that may use the door; default none. */
  readonly cors?: CorsOptions | undefined;
}

const DEFAULTS = defaultsOf('rest');

/** The REST door (CONTRACT.md#rest-routes) as a Fastify plugin. */
export const rest: FastifyPluginAsync<RestOptions> = async (
  app,
  {
    users,
    maxBodyBytes = DEFAULTS.maxBodyBytes,
    requireIfMatch = DEFAULTS.requireIfMatch,
    idempotencyHours = DEFAULTS.idempotencyHours,
    userPaths = DEFAULTS.users,
    maxImportBytes = DEFAULTS.maxImportBytes,
    relations = new Map(),
    feed,
    relationFeed,
    sending,
    maxStreams = DEFAULTS.maxStreams,
    api,
    cors: pages,
  },
) => {
  const isStandard = userPaths === 'standard';
  if (isStandard && users.rows === undefined)
    throw new Error(
      'Users have the paths of a relation only if their rows are open, as readRelations lists them',
    );
  const served: RowStores =
    isStandard && users.rows !== undefined ? new Map([...relations, [USERS, users.rows]]) : relations;
  const policy = await pluginPolicy(
    app,
    api,
    Array.from(served.values()).some((rows) => hasRules(rows.relation)),
  );
  const cors = corsPolicy(pages);
  const bodyBudget = BodyBudget.of(app);
  const imports = { maxImportBytes, bodyBudget, places: importPlaces() };
  const openStream = changeStreams({ maxStreams, policy, cors });
  const changes = feed && userChanges(openStream, feed);
  const listed = relationsOf(relations, users.rows);
  const rules =
    listed.size === 0 ? undefined : (await import('../access/row-access.ts')).rulesOf(listed, policy);
  const shared = {
    prefix: app.prefix,
    requireIfMatch,
    idempotencyHours,
    ...imports,
    policy,
    cors,
  };
  const listOptions = async () => ({
    relations: listed,
    rules,
    cursorKey: () => users.lists.cursorKey(),
    ...(await import('./relation-lists.ts')).listCaches(),
  });
  readRawBodies(app, bodyBudget);
  app.setNotFoundHandler(notFound);
  addPreflights(app, cors, undefined, served.size === 0 ? [] : ['PATCH']);
  const names = new Set([...served.keys(), ...(sending === undefined ? [] : SENDING_PATHS)]);
  const errors = restErrorsWith(names, app.prefix);
  app.setErrorHandler((error, request, reply) =>
    request.is404 ? notFound(request, reply) : sendProblem(errors, error, request, reply),
  );

  // A trailing slash makes no difference.
  if (!isStandard) {
    const plain = userEndpoints({ users, bodyLimit: maxBodyBytes, changes, ...shared });
    const { list, read, create, update, remove } =
      users.rows === undefined
        ? plain
        : (await import('./user-columns.ts')).withColumns(plain, users.rows, {
            users,
            ...shared,
            ...(await listOptions()),
          });
    for (const slash of ['', '/']) {
      addEndpoint(app, 'GET', `/users${slash}`, list);
      addEndpoint(app, 'POST', `/users${slash}`, create);
      addEndpoint(app, 'GET', `/users/:id${slash}`, read);
      addEndpoint(app, 'PUT', `/update/:id${slash}`, update);
      addEndpoint(app, 'DELETE', `/delete/:id${slash}`, remove);
    }
  }

  if (served.size > 0) {
    const [{ addRowRoutes }, { RelationChanges }, { batchEndpoint }] = await Promise.all([
      import('./relations/row-routes.ts'),
      import('./relations/relation-changes.ts'),
      import('./relations/batch.ts'),
    ]);
    const options = {
      ...shared,
      ...(await listOptions()),
      stores: served,
      changes: new RelationChanges({
        stores: served,
        relations: listed,
        rules,
        feed: relationFeed,
        ofUsers: changes,
        open: openStream,
        policy,
        cors,
      }),
    };
    const batch = batchEndpoint(served, options);
    for (const slash of ['', '/']) addEndpoint(app, 'POST', `/${BATCH}${slash}`, batch);
    const { all } = options.changes;
    for (const slash of ['', '/']) addEndpoint(app, 'GET', `/${CHANGES_PATH}${slash}`, all, { fast: false });
    addRowRoutes(app, options);
  }

  if (sending !== undefined) {
    const { addSendingRoutes } = await import('./sending.ts');
    addSendingRoutes(app, sending, { policy, cors });
  }

  function notFound(request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const allow = allowedOf(request.url.slice(app.prefix.length), names);
    if (cors !== undefined) addFields(reply, cors.fieldsFor(request.headers.origin));
    if (allow !== undefined && request.method === 'OPTIONS') {
      return addFields(reply, { allow }).type(JSON_TYPE).send('');
    }
    return sendProblem(errors, allow === undefined ? NO_ROUTE : methodNotAllowed(allow), request, reply);
  }
};

/** The relations that conditions may name, with that of users if one refers to it. */
function relationsOf(stores: RowStores, users: RowStore | undefined): ReadonlyMap<string, Relation> {
  const all = [...stores.values(), ...(users === undefined ? [] : [users])];
  return new Map(all.map(({ relation }) => [relation.name, relation]));
}
