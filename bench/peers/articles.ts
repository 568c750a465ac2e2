// A user-defined schema, as in a program whose resolvers wait for I/O: each returns a promise.

export const typeDefs = `#graphql
  type Author { id: ID! name: String! }
  type Article { id: ID! title: String! tags: [String!]! author: Author! comments: Int! }
  type Query { articles: [Article!]! article(id: ID!): Article }
`;

export interface Article {
  readonly id: string;
  readonly title: string;
  readonly tags: readonly string[];
  readonly authorId: string;
}

const ARTICLES = 20;
const AUTHORS = 5;

const authors = new Map(
  Array.from({ length: AUTHORS }, (_, i) => [String(i), { id: String(i), name: `Author ${i}` }]),
);
const articles: readonly Article[] = Array.from({ length: ARTICLES }, (_, i) => ({
  id: String(i),
  title: `Article number ${i}`,
  tags: ['one', 'two'],
  authorId: String(i % AUTHORS),
}));

export const resolvers = {
  Query: {
    articles: async (): Promise<readonly Article[]> => articles,
    article: async (_root: unknown, { id }: { readonly id: string }): Promise<Article | undefined> =>
      articles[Number(id)],
  },
  Article: {
    author: async ({ authorId }: Article): Promise<unknown> => authors.get(authorId),
    comments: async ({ id }: Article): Promise<number> => id.length,
  },
};
