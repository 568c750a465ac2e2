import { resolvers, typeDefs } from '../../peers/articles.ts';

export default { graphql: { typeDefs, resolvers } };
