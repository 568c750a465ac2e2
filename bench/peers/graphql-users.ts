// The schema of Portico's GraphQL door over users in memory, for peers that take a schema.
import { makeUsers, type User } from './memory-users.ts';

export const typeDefs = `#graphql
  type User { id: ID! name: String! email: String! }
  type Query { hello: String! users: [User!]! user(id: ID!): User }
`;

const users = makeUsers();
const byId = new Map(users.map((user) => [user.id, user]));

export const resolvers = {
  Query: {
    hello: (): string => 'Hello from Portico!',
    users: (): readonly User[] => users,
    user: (_root: unknown, { id }: { readonly id: string }): User | undefined => byId.get(id),
  },
};
