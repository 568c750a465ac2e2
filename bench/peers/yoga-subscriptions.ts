// Yoga with graphql-ws, combined as in Yoga's documentation; one mutation, one subscription.
import { createServer } from 'node:http';
import type { ExecutionArgs } from 'graphql';
import { useServer } from 'graphql-ws/use/ws';
import { createPubSub, createSchema, createYoga } from 'graphql-yoga';
import { WebSocketServer } from 'ws';
import { address } from './listen.ts';

interface User {
  readonly id: string;
  readonly name: string;
  readonly email: string;
}

/** Called instead of GraphQL.js's own functions, with the plugins of Yoga. */
interface Enveloped {
  execute(args: ExecutionArgs): unknown;
  subscribe(args: ExecutionArgs): unknown;
}

const pubSub = createPubSub<{ userCreated: [User] }>();
let count = 0;
const yoga = createYoga({
  schema: createSchema({
    typeDefs: `#graphql
      type User { id: ID! name: String! email: String! }
      type Query { hello: String! }
      type Mutation { createUser(name: String!, email: String!): User! }
      type Subscription { userCreated: User! }
    `,
    resolvers: {
      Query: { hello: (): string => 'Hello' },
      Mutation: {
        createUser(_root: unknown, { name, email }: Omit<User, 'id'>): User {
          const user = { id: String(++count), name, email };
          pubSub.publish('userCreated', user);
          return user;
        },
      },
      Subscription: {
        userCreated: {
          subscribe: () => pubSub.subscribe('userCreated'),
          resolve: (user: User): User => user,
        },
      },
    },
  }),
  logging: false,
  graphiql: false,
  landingPage: false,
  multipart: false,
  maxRequestBodySize: false,
});

const server = createServer(yoga);
useServer(
  {
    execute: (args) => (args.rootValue as Enveloped).execute(args) as never,
    subscribe: (args) => (args.rootValue as Enveloped).subscribe(args) as never,
    async onSubscribe(context, _id, params) {
      const { schema, execute, subscribe, contextFactory, parse, validate } = yoga.getEnveloped({
        ...context,
        req: context.extra.request,
        socket: context.extra.socket,
        params,
      });
      const args = {
        schema,
        operationName: params.operationName ?? null,
        document: parse(params.query),
        variableValues: params.variables ?? null,
        contextValue: await contextFactory(),
        rootValue: { execute, subscribe },
      };
      const errors = validate(args.schema, args.document);
      return errors.length > 0 ? errors : args;
    },
  },
  new WebSocketServer({ server, path: yoga.graphqlEndpoint }),
);
server.listen(address);
