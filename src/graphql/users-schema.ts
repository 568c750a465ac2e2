import {
  GraphQLError,
  GraphQLID,
  GraphQLList,
  GraphQLNonNull,
  GraphQLObjectType,
  GraphQLSchema,
  GraphQLString,
} from 'graphql';
import type { MaybePromise } from '../core/maybe-promise.ts';
import type { NewUser, User } from '../users/user.ts';
import type { UserFeed } from '../users/user-feed.ts';
import { UserRefusedError, type UserStore } from '../users/user-store.ts';

/** Asked for several times in one operation, the store is asked once. */
const ONCE = { once: true } as const;

/** The schema of contract 4.1 over a store of users and the feed of those that are created in it. */
export function usersSchema(users: UserStore, feed: UserFeed): GraphQLSchema {
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
        extensions: ONCE,
        resolve: () => users.all(),
      },
      // Nullable: null when no user has that id.
      user: {
        type: user,
        args: { id: { type: required.id } },
        extensions: ONCE,
        resolve: (_root, { id }: { readonly id: string }) => users.byId(id),
      },
    },
  });
  const mutation = new GraphQLObjectType({
    name: 'Mutation',
    fields: {
      createUser: {
        type: new GraphQLNonNull(user),
        args: { name: { type: required.text }, email: { type: required.text } },
        resolve: (_root, newUser: NewUser) => showErrors(() => users.add(newUser)),
      },
    },
  });
  const subscription = new GraphQLObjectType({
    name: 'Subscription',
    fields: {
      userCreated: {
        type: new GraphQLNonNull(user),
        subscribe: () => feed.subscribe(),
        resolve: (user: User) => user,
      },
    },
  });
  return new GraphQLSchema({ query, mutation, subscription });
}

/** Runs a resolver whose refusals are the client's business; all other errors stay hidden from it. */
export function showErrors<T>(resolve: () => MaybePromise<T>): MaybePromise<T> {
  try {
    const value = resolve();
    return value instanceof Promise ? value.catch(rethrow) : value;
  } catch (error) {
    return rethrow(error);
  }
}

function rethrow(error: unknown): never {
  if (!(error instanceof UserRefusedError)) throw error;
  throw new GraphQLError(error.message, { extensions: { code: error.code } });
}
