import { type GraphQLSchema, printSchema } from 'graphql';

/** A schema in GraphQL's definition language, with its descriptions. */
export function sdlOf(schema: GraphQLSchema): string {
  return `${printSchema(schema)}\n`;
}
