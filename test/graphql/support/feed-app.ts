import fastify, { type FastifyInstance } from 'fastify';
import { type GraphqlOptions, graphql } from '../../../src/graphql/graphql.ts';
import { usersSchema } from '../../../src/graphql/users-schema.ts';
import { LocalUserFeed } from '../../../src/relations/events.ts';
import { MemoryUserStore } from '../../../src/relations/user-stores.ts';

/** The door's plugin in an application of its own, whose feed can be looked at. */
export interface FeedApp extends AsyncDisposable {
  readonly app: FastifyInstance;
  readonly url: string;
  readonly feed: LocalUserFeed;
}

export async function startFeedApp(options: Partial<GraphqlOptions> = {}): Promise<FeedApp> {
  const feed = new LocalUserFeed();
  const app = fastify();
  app.register(graphql, { schema: usersSchema(new MemoryUserStore(feed, 100_000), feed), ...options });
  const origin = await app.listen({ host: '127.0.0.1', port: 0 });
  return {
    app,
    url: `${origin}/graphql`,
    feed,
    async [Symbol.asyncDispose]() {
      // A test that failed may have left its streams open.
      app.server.closeAllConnections();
      await app.close();
    },
  };
}
