import type { Settings } from '../config/options/options.ts';
import { graphql } from '../graphql/graphql.ts';
import { graphqlErrors } from '../graphql/graphql-errors.ts';
import { usersSchema } from '../graphql/users-schema.ts';
import { LocalUserFeed } from '../users/local-user-feed.ts';
import { MemoryUserStore } from '../users/memory-user-store.ts';
import type { Parts } from './parts.ts';

/** Wires the GraphQL door over users in memory, or over those of the database. */
export function openGraphqlDoor({ config: { settings }, metrics, database, listener }: Parts): void {
  const { users, userFeed } = settings['graphql.users'] === 'memory' ? inMemory(settings) : database();
  listener('graphql', graphqlErrors).register(graphql, {
    schema: usersSchema(users, userFeed),
    path: settings['graphql.path'],
    ...limits(settings),
    metrics,
  });
}

function inMemory(settings: Settings) {
  const userFeed = new LocalUserFeed();
  return { users: new MemoryUserStore(userFeed, settings['graphql.maxUsers']), userFeed };
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
