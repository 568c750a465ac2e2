import { ApolloServer } from '@apollo/server';
import fastifyApollo, { fastifyApolloDrainPlugin } from '@as-integrations/fastify';
import Fastify from 'fastify';
import { resolvers, typeDefs } from './graphql-users.ts';
import { address } from './listen.ts';

const app = Fastify({ logger: false });
const apollo = new ApolloServer({ typeDefs, resolvers, plugins: [fastifyApolloDrainPlugin(app)] });
await apollo.start();
await app.register(fastifyApollo(apollo));
await app.listen(address);
