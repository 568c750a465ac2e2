// The entry `portico/graphql`.
export type { ContextDetails } from './config.ts';
export { type GraphqlOptions, graphql } from './graphql.ts';
