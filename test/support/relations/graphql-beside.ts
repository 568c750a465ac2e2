import assert from 'node:assert/strict';
import { createListener } from '@portico/transport';
import type { AccessPolicy } from '../../../src/access/policy.ts';
import { rulesOf } from '../../../src/access/row-access.ts';
import { graphql } from '../../../src/graphql/graphql.ts';
import { relationResolvers } from '../../../src/graphql/relations/resolvers.ts';
import { relationsSchema } from '../../../src/graphql/relations/schema.ts';
import { graphqlErrors } from '../../../src/graphql/requests.ts';
import { usersSchema } from '../../../src/graphql/users-schema.ts';
import type { RelationFeed } from '../../../src/relations/events.ts';
import { type Relation, USERS } from '../../../src/relations/relation.ts';
import type { RowStores } from '../../../src/relations/rows/rows.ts';
import type { Database } from '../../../src/sql/database.ts';
import { openLog } from '../../../src/telemetry/log.ts';
import { captureLog } from '../log-capture.ts';

interface Served {
  readonly database: Database;
  readonly stores: RowStores;
  readonly feed: RelationFeed | undefined;
  readonly relations: readonly Relation[];
  readonly api: AccessPolicy | undefined;
}

/** Opens a GraphQL door over the rows of a REST door. */
export async function openGraphql({ database, stores, feed, relations, api }: Served) {
  const { users } = database;
  const all = new Map(relations.map((relation) => [relation.name, relation]));
  const rules = rulesOf(all, api);
  const resolvers = relationResolvers({
    relations: all,
    extendsUsers: true,
    rules,
    storeOf(name) {
      const store = name === USERS ? users.rows : stores.get(name);
      assert.ok(store !== undefined);
      return store;
    },
    feed,
    cursorKey: () => users.lists.cursorKey(),
    maxValues: 1_000_000,
    requireIfMatch: false,
  });
  const schema = relationsSchema(usersSchema(users, database.userFeed), all, resolvers);
  const log = captureLog();
  const listener = createListener({
    door: 'graphql',
    host: '127.0.0.1',
    port: 0,
    portHint: '--graphql-port',
    log: await openLog({ level: 'info', stream: log.stream }),
    errors: graphqlErrors,
    fastPath: true,
  });
  listener.app.register(graphql, { schema, rules, api });
  const url = `${await listener.listen()}/graphql`;
  return { url, schema, [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose]() };
}
