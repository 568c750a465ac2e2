// The entry `portico/graphql`.
export type { ContextDetails } from '../config/schema/graphql.ts';
export { type GraphqlOptions, graphql } from './graphql.ts';
