import type { Settings } from '../config/options/options.ts';
import { graphql } from '../graphql/graphql.ts';
import { graphqlErrors } from '../graphql/graphql-errors.ts';
import { usersSchema } from '../graphql/users-schema.ts';
import { MemoryUserCollection } from '../users/memory-user-collection.ts';
import { StoredUserCollection } from '../users/stored-user-collection.ts';
import { UserFeed } from '../users/user-feed.ts';
import type { Parts } from './parts.ts';

/** Wires the GraphQL door: its own users in memory, or those of the database. */
export function openGraphqlDoor({
  config: { settings },
  metrics,
  newUsers,
  storedUsers,
  listener,
}: Parts): void {
  const inMemory = settings['graphql.users'] === 'memory';
  const feed = new UserFeed();
  const users = inMemory
    ? new MemoryUserCollection(feed, settings['graphql.maxUsers'])
    : new StoredUserCollection(storedUsers());
  listener('graphql', graphqlErrors).register(graphql, {
    schema: usersSchema(users, inMemory ? feed : newUsers),
    path: settings['graphql.path'],
    ...limits(settings),
    metrics,
  });
}

function limits(settings: Settings) {
  return {
    limits: {
      maxTokens: settings['graphql.maxTokens'],
      maxDepth: settings['graphql.maxDepth'],
      maxAliases: settings['graphql.maxAliases'],
      maxDirectives: settings['graphql.maxDirectives'],
      maxRootFields: settings['graphql.maxRootFields'],
    },
    maxBodyBytes: settings['graphql.maxBodyBytes'],
    maxCachedDocuments: settings['graphql.maxCachedDocuments'],
    introspection: settings['graphql.introspection'],
    suggestions: settings['graphql.suggestions'],
  };
}
