import Fastify from 'fastify';
import mercurius from 'mercurius';
import { resolvers, typeDefs } from './graphql-schema.ts';
import { address } from './listen.ts';

// `jit: 1` compiles a query after its first run.
const app = Fastify({ logger: false });
await app.register(mercurius.default, { schema: typeDefs, resolvers, jit: 1, graphiql: false });
await app.listen(address);
