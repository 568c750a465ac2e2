import { ConfigError } from '../../config/config-error.ts';
import type { ModuleCheck } from '../../config/load.ts';
import { settingsOf } from '../../config/options/options.ts';
import type { ContextDetails, GraphqlContext } from '../../config/schema/graphql-code.ts';
import { graphql } from '../../graphql/graphql.ts';
import { graphqlErrors } from '../../graphql/graphql-errors.ts';
import { ownSchema } from '../../graphql/own-schema/own-schema.ts';
import { usersForCode } from '../../graphql/own-schema/users-for-code.ts';
import { sdlOf } from '../../graphql/sdl.ts';
import { usersSchema } from '../../graphql/users-schema.ts';
import { addFrontPage } from '../../http/front-page.ts';
import { LocalUserFeed } from '../../users/local-user-feed.ts';
import { MemoryUserStore } from '../../users/memory-user-store.ts';
import type { Parts } from '../parts.ts';

/** Wires the GraphQL door over users in memory, or over those of the database. Throws ConfigError. */
export function openGraphqlDoor({ config, metrics, database, listener, apis, api }: Parts): void {
  const { settings, code, file } = config;
  const options = settingsOf(settings, 'graphql');
  const { users, userFeed } = options.users === 'memory' ? inMemory(options.maxUsers) : database();
  const problems: string[] = [];
  const schema = ownSchema(code.graphql, usersSchema(users, userFeed), file ?? 'configuration', problems);
  if (problems.length > 0) throw new ConfigError(problems);
  apis.sdl = () => sdlOf(schema);
  const portico: GraphqlContext = { users: usersForCode(users, userFeed) };
  const { context } = code.graphql;
  const app = listener('graphql', graphqlErrors);
  app.register(graphql, {
    ...options,
    limits: options,
    schema,
    metrics,
    api,
    cors: settingsOf(settings, 'graphql.cors'),
    context: context && ((request, details) => context(request, withDetails(portico, details))),
    contextValue: portico,
  });
  addFrontPage(app, {
    title: 'Portico: GraphQL',
    about: 'The GraphQL door. In a browser the endpoint is an editor for queries.',
    paths: { [options.path]: 'Queries, mutations and subscriptions, by POST or GET.' },
  });
}

/** A signal that nobody reads is not made. */
function withDetails(portico: GraphqlContext, details: ContextDetails): GraphqlContext & ContextDetails {
  return {
    ...portico,
    connectionParams: details.connectionParams,
    caller: details.caller,
    get abortSignal() {
      return details.abortSignal;
    },
  };
}

/** Checks the schema of a configuration module without its users. */
export const checkSchema: ModuleCheck = ({ graphql: given }, name, _resolveSecret, problems) => {
  const { users, userFeed } = inMemory(0);
  ownSchema(given, usersSchema(users, userFeed), name, problems);
};

function inMemory(maxUsers: number) {
  const userFeed = new LocalUserFeed();
  return { users: new MemoryUserStore(userFeed, maxUsers), userFeed };
}
