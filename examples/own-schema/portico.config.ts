import { setTimeout as wait } from 'node:timers/promises';
import { defineConfig, type GraphqlContext } from 'portico';

interface Book {
  readonly title: string;
  /** The id of a user. */
  readonly author: string;
}

const books: readonly Book[] = [
  { title: 'Sketch of the Analytical Engine', author: '1' },
  { title: 'Computing Machinery and Intelligence', author: '2' },
];

export default defineConfig({
  graphql: {
    typeDefs: `
      extend type Query {
        books(title: String): [Book!]!
      }
      extend type Subscription {
        "Counts down to zero."
        countdown(from: Int!): Int!
      }
      extend type User {
        books: [Book!]!
      }
      type Book {
        title: String!
        author: User!
      }
    `,
    resolvers: {
      Query: {
        // A resolver may return a promise.
        books: async (_parent, { title }: { readonly title?: string }) =>
          books.filter((book) => title === undefined || book.title.includes(title)),
      },
      Subscription: {
        countdown: {
          async *subscribe(_parent, { from }: { readonly from: number }) {
            for (let left = from; left >= 0; left--) {
              yield left;
              await wait(10);
            }
          },
          // Each event is the parent of its value.
          resolve: (left) => left,
        },
      },
      Book: {
        author: (book: Book, _args, { users }: GraphqlContext) => users.byId(book.author),
      },
      User: {
        books: (user: { readonly id: string }) => books.filter(({ author }) => author === user.id),
      },
    },
  },
});
