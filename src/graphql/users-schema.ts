import {
  GraphQLID,
  GraphQLList,
  GraphQLNonNull,
  GraphQLObjectType,
  GraphQLSchema,
  GraphQLString,
} from 'graphql';
import type { NewUser } from '../users/user.ts';
import type { UserCollection } from '../users/user-collection.ts';

/** The schema of contract 4.1 over a collection of users. */
export function usersSchema(users: UserCollection): GraphQLSchema {
  const required = { id: new GraphQLNonNull(GraphQLID), text: new GraphQLNonNull(GraphQLString) };
  // contract 2.1
  const user = new GraphQLObjectType({
    name: 'User',
    fields: { id: { type: required.id }, name: { type: required.text }, email: { type: required.text } },
  });
  const query = new GraphQLObjectType({
    name: 'Query',
    fields: {
      hello: { type: required.text, resolve: () => 'Hello from Portico!' },
      users: {
        type: new GraphQLNonNull(new GraphQLList(new GraphQLNonNull(user))),
        resolve: () => users.all(),
      },
      // Nullable: null when no user has that id.
      user: {
        type: user,
        args: { id: { type: required.id } },
        resolve: (_root, { id }: { readonly id: string }) => users.byId(id) ?? null,
      },
    },
  });
  const mutation = new GraphQLObjectType({
    name: 'Mutation',
    fields: {
      createUser: {
        type: new GraphQLNonNull(user),
        args: { name: { type: required.text }, email: { type: required.text } },
        resolve: (_root, newUser: NewUser) => users.add(newUser),
      },
    },
  });
  return new GraphQLSchema({ query, mutation });
}
