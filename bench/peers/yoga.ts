import { createServer } from 'node:http';
import { useGraphQlJit } from '@envelop/graphql-jit';
import { createSchema, createYoga } from 'graphql-yoga';
import { resolvers, typeDefs } from './graphql-schema.ts';
import { address } from './listen.ts';

// Disables expensive features that the measurement does not use; the last one keeps Yoga from copying each
// body.
const yoga = createYoga({
  schema: createSchema({ typeDefs, resolvers }),
  logging: false,
  graphiql: false,
  landingPage: false,
  multipart: false,
  maxRequestBodySize: false,
  plugins: process.env.JIT === 'yes' ? [useGraphQlJit()] : [],
});
createServer(yoga).listen(address);
