import { EventEmitter, on } from 'node:events';
import {
  GraphQLError,
  GraphQLList,
  GraphQLNonNull,
  GraphQLObjectType,
  GraphQLSchema,
  GraphQLString,
} from 'graphql';

interface Book {
  readonly title: string;
  readonly author: string;
}

/** What the resolvers get of a request. */
interface Context {
  readonly reader: string | undefined;
}

const books: Book[] = [
  { title: 'Momo', author: 'Michael Ende' },
  { title: 'Solaris', author: 'Stanisław Lem' },
];
/** Each open subscription listens. */
const events = new EventEmitter().setMaxListeners(0);

const text = { type: new GraphQLNonNull(GraphQLString) };
const book = new GraphQLNonNull(
  new GraphQLObjectType({ name: 'Book', fields: { title: text, author: text } }),
);

const query = new GraphQLObjectType<unknown, Context>({
  name: 'Query',
  fields: {
    books: {
      type: new GraphQLNonNull(new GraphQLList(book)),
      args: { author: { type: GraphQLString } },
      resolve: (_root, { author }) => books.filter((one) => author === undefined || one.author === author),
    },
    reader: { type: GraphQLString, resolve: (_root, _args, { reader }) => reader },
  },
});

const mutation = new GraphQLObjectType<unknown, Context>({
  name: 'Mutation',
  fields: {
    addBook: {
      type: book,
      args: { title: text, author: text },
      resolve(_root, { title, author }, { reader }) {
        // The client reads a GraphQLError; of any other error it only learns that there was one.
        if (reader === undefined) throw new GraphQLError('Say who you are in the header x-reader');
        const added = { title, author };
        books.push(added);
        events.emit('added', added);
        return added;
      },
    },
  },
});

const subscription = new GraphQLObjectType<unknown, Context>({
  name: 'Subscription',
  fields: {
    bookAdded: {
      type: book,
      subscribe: () => on(events, 'added'),
      resolve: (event) => (event as readonly [Book])[0],
    },
  },
});

export const schema = new GraphQLSchema({ query, mutation, subscription });
