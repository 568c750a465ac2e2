import { ApolloServer } from '@apollo/server';
import { startStandaloneServer } from '@apollo/server/standalone';
import { resolvers, typeDefs } from './graphql-users.ts';
import { address } from './listen.ts';

await startStandaloneServer(new ApolloServer({ typeDefs, resolvers }), { listen: address });
