// The schema that a peer serves: `SCHEMA=articles`, or the users.
import * as articles from './articles.ts';
import * as users from './graphql-users.ts';

export const { typeDefs, resolvers } = process.env.SCHEMA === 'articles' ? articles : users;
