import { addEndpoints, BodyBudget, readRawBodies, sendProblem } from '@portico/transport';
import type { FastifyInstance, FastifyPluginAsync } from 'fastify';
import type { RelationFeed } from '../../relations/events.ts';
import { USERS } from '../../relations/relation.ts';
import type { RowStores } from '../../relations/rows/rows.ts';
import type { DatabaseUserStore } from '../../relations/user-stores.ts';
import { importPlaces } from '../bulk.ts';
import { changeStreams } from '../change-feed.ts';
import { restErrorsWith } from '../messages.ts';
import { listCaches } from '../relation-lists.ts';
import { relationEndpoints } from '../relations.ts';
import { RelationChanges } from './relation-changes.ts';

type Options = Parameters<typeof relationEndpoints>[1];

/** Adds the paths of relations, their lists and their rows. Clients write the rows of `written`; default: of all. */
export function addRowRoutes(app: FastifyInstance, options: Options, written = options.stores): void {
  const endpoints = Array.from(
    options.stores,
    ([name, store]) => [name, relationEndpoints(store, options)] as const,
  );
  const each = (which: keyof ReturnType<typeof relationEndpoints>, stores = written) =>
    new Map(endpoints.filter(([name]) => stores.has(name)).map(([name, own]) => [name, own[which]]));
  for (const slash of ['', '/']) {
    addEndpoints(app, 'GET', each('list', options.stores), slash);
    addEndpoints(app, 'GET', each('read', options.stores), `/:key${slash}`);
    addEndpoints(app, 'POST', each('create'), slash);
    addEndpoints(app, 'DELETE', each('removeAll'), slash);
    addEndpoints(app, 'PATCH', each('change'), `/:key${slash}`);
    addEndpoints(app, 'PUT', each('put'), `/:key${slash}`);
    addEndpoints(app, 'DELETE', each('remove'), `/:key${slash}`);
  }
}

/** What `everyRow` serves. */
interface EveryRowOptions {
  readonly users: DatabaseUserStore;
  readonly stores: RowStores;
  /** The changes of the relations that record them. */
  readonly feed: RelationFeed | undefined;
  readonly maxImportBytes: number;
  readonly maxStreams: number;
}

/**
 * Serves all rows of all relations to everyone who reaches its scope: it asks neither for scopes nor for rules. Users are
 * only read here, because a contract governs their paths.
 */
export const everyRow: FastifyPluginAsync<EveryRowOptions> = async (
  app,
  { users, stores, feed, maxImportBytes, maxStreams },
) => {
  const all: RowStores = users.rows === undefined ? stores : new Map([...stores, [USERS, users.rows]]);
  const relations = new Map(Array.from(all, ([name, { relation }]) => [name, relation]));
  const bodyBudget = BodyBudget.of(app);
  const open = { policy: undefined, cors: undefined };
  readRawBodies(app, bodyBudget);
  const errors = restErrorsWith(new Set(all.keys()), app.prefix);
  app.setErrorHandler((error, request, reply) => sendProblem(errors, error, request, reply));
  addRowRoutes(
    app,
    {
      ...open,
      ...listCaches(),
      prefix: app.prefix,
      relations,
      rules: undefined,
      stores: all,
      cursorKey: () => users.lists.cursorKey(),
      requireIfMatch: false,
      idempotencyHours: 1,
      maxImportBytes,
      bodyBudget,
      places: importPlaces(),
      changes: new RelationChanges({
        ...open,
        stores: all,
        relations,
        rules: undefined,
        feed,
        ofUsers: undefined,
        open: changeStreams({ ...open, maxStreams }),
      }),
    },
    stores,
  );
};
