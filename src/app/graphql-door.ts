import { settingsOf } from '../config/options/options.ts';
import { graphql } from '../graphql/graphql.ts';
import { graphqlErrors } from '../graphql/graphql-errors.ts';
import { usersSchema } from '../graphql/users-schema.ts';
import { addFrontPage } from '../http/front-page.ts';
import { LocalUserFeed } from '../users/local-user-feed.ts';
import { MemoryUserStore } from '../users/memory-user-store.ts';
import type { Parts } from './parts.ts';

/** Wires the GraphQL door over users in memory, or over those of the database. */
export function openGraphqlDoor({ config: { settings }, metrics, database, listener }: Parts): void {
  const options = settingsOf(settings, 'graphql');
  const { users, userFeed } = options.users === 'memory' ? inMemory(options.maxUsers) : database();
  const schema = usersSchema(users, userFeed);
  const app = listener('graphql', graphqlErrors);
  app.register(graphql, { ...options, limits: options, schema, metrics });
  addFrontPage(app, {
    title: 'Portico: GraphQL',
    about: 'The GraphQL door. In a browser the endpoint is an editor for queries.',
    paths: { [options.path]: 'Queries, mutations and subscriptions, by POST or GET.' },
  });
}

function inMemory(maxUsers: number) {
  const userFeed = new LocalUserFeed();
  return { users: new MemoryUserStore(userFeed, maxUsers), userFeed };
}
