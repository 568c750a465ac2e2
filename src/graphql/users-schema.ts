import {
  GraphQLError,
  GraphQLID,
  GraphQLList,
  GraphQLNonNull,
  GraphQLObjectType,
  GraphQLSchema,
  GraphQLString,
  printSchema,
} from 'graphql';
import type { MaybePromise } from '../core/scheduler.ts';
import type { ChangeType, UserFeed } from '../relations/events.ts';
import { type NewUser, type User, UserRefusedError, type UserStore } from '../relations/user.ts';

/** Repeated in one operation, the field queries the store once. */
const ONCE = { once: true } as const;
/** The list of users contains no promises, so it need not be searched for them. */
const ONCE_PLAIN = { ...ONCE, plain: true } as const;
/** For a user just created, these fields show only what the caller has sent and the new id. */
const GIVEN = { given: true } as const;

/** The schema of CONTRACT.md#graphql-operations over a store of users and the feed of their events. */
export function usersSchema(users: UserStore, feed: UserFeed): GraphQLSchema {
  const required = { id: new GraphQLNonNull(GraphQLID), text: new GraphQLNonNull(GraphQLString) };
  // CONTRACT.md#graphql-user
  const user = new GraphQLObjectType({
    name: 'User',
    description: 'A person with a name and an email address.',
    fields: {
      id: {
        type: required.id,
        description: 'The id that the service gave to the user. It never changes.',
        extensions: GIVEN,
      },
      name: { type: required.text, description: 'The name, exactly as it was sent.', extensions: GIVEN },
      email: {
        type: required.text,
        description: 'The email address, exactly as it was sent.',
        extensions: GIVEN,
      },
    },
  });
  const query = new GraphQLObjectType({
    name: 'Query',
    description: 'The operations that read data.',
    fields: {
      hello: {
        type: required.text,
        description: 'A greeting. It shows that the service answers.',
        resolve: () => 'Hello from Portico!',
      },
      users: {
        type: new GraphQLNonNull(new GraphQLList(new GraphQLNonNull(user))),
        description: 'All users, in the order in which they were created.',
        extensions: ONCE_PLAIN,
        resolve: () => users.all(),
      },
      user: {
        type: user,
        description: 'The user with the given id. It is null when no user has that id.',
        args: {
          id: { type: required.id, description: 'The id to look for. It is compared as a string.' },
        },
        extensions: ONCE,
        resolve: (_root, { id }: { readonly id: string }) => users.byId(id),
      },
    },
  });
  const mutation = new GraphQLObjectType({
    name: 'Mutation',
    description: 'The operations that change data.',
    fields: {
      createUser: {
        type: new GraphQLNonNull(user),
        description: 'Creates a user and returns it with its new id.',
        args: {
          name: { type: required.text, description: 'The name of the new user.' },
          email: { type: required.text, description: 'The email address of the new user.' },
        },
        extensions: GIVEN,
        resolve: (_root, newUser: NewUser) => showErrors(() => users.add(newUser)),
      },
    },
  });
  const followed = (type: ChangeType, description: string) => ({
    type: new GraphQLNonNull(user),
    description,
    subscribe: () => feed.subscribe(type),
    resolve: (user: User) => user,
  });
  const subscription = new GraphQLObjectType({
    name: 'Subscription',
    description: 'The events that clients can subscribe to.',
    fields: {
      userCreated: followed('created', 'Each user that is created from now on, whichever client creates it.'),
      userUpdated: followed('updated', 'Each user that is updated from now on, in its new state.'),
      userDeleted: followed('deleted', 'Each user that is deleted from now on, in its last state.'),
    },
  });
  return new GraphQLSchema({
    description: 'The users of this service.',
    query,
    mutation,
    subscription,
  });
}

/** Runs a resolver and shows its refusals to the client; all other errors stay hidden. */
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

/** A schema in GraphQL's definition language, with its descriptions. */
export function sdlOf(schema: GraphQLSchema): string {
  return `${printSchema(schema)}\n`;
}
